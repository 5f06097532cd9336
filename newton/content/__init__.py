"""What ships as data: frames and profiles, read from YAML into frozen, validated models."""
