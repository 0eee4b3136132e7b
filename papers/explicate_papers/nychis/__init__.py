"""Paper N: XCP over 802.11."""
