"""Paper I: XCP-i."""
