"""What a replay amounts to: its verdict, the reasons, and the report."""
