"""Paper K: VCP with BISE and WLTE."""
