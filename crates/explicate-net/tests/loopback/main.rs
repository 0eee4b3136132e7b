//! End points and programs over the loopback interface. Needs no root.

mod arguments;
mod datagrams;
mod ends;
mod files;
mod hostile_resets;
mod hostile_sockets;
mod keys;
mod limits;
mod quic;
mod units;
