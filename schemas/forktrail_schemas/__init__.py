"""The contract: event types, Avro, wire codec, headers, signatures, ids, topics, settings and errors."""
