"""The local broker: Apache Kafka itself, one node on loopback, as a process of this machine (compose/DESIGN.md)."""
