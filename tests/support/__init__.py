"""What tests share: stories told as events, without a broker."""
