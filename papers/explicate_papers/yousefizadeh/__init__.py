"""Paper Y: cross-layer profiling of XCP, VCP and TCP with REM and ECN."""
