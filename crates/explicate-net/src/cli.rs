//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use explicate_core::presets::{DEFAULT_EXPLICIT, DEFAULT_SENDER};

/// A number of seconds; ten years are the most.
fn seconds(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|s| (0.0..=3.2e8).contains(s));
    found.ok_or_else(|| "seconds, a number from 0 to 3.2e8".to_string())
}

/// The same, where none make no sense.
fn some_seconds(text: &str) -> Result<f64, String> {
    seconds(text).ok().filter(|s| *s > 0.0).ok_or_else(|| "seconds, a number above 0 and up to 3.2e8".to_string())
}

/// A share, of 1 or with a per cent sign.
fn share(text: &str) -> Result<f64, String> {
    let found = match text.strip_suffix('%') {
        Some(number) => number.parse::<f64>().ok().map(|per_cent| per_cent / 100.0),
        None => text.parse().ok(),
    };
    found
        .filter(|s| (0.0..=0.9).contains(s))
        .ok_or_else(|| "a share from 0 to 0.9, or a percentage like 2%".to_string())
}

/// Explicit congestion control between Linux hosts.
#[derive(Parser, Debug)]
#[command(name = "explicated", version, about, propagate_version = true)]
#[command(after_help = "Exit status: 0, 1 if it failed or was interrupted, 2 if what was asked for makes no sense.")]
pub struct Cli {
    /// More about what happens, on stderr; twice for all.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Logs as JSON, one object a line.
    #[arg(long, global = true)]
    pub log_json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Sends to `explicated recv`: for a time, so many bytes, or a file
    Send(Send),
    /// Receives what `explicated send` sends
    Recv(Recv),
    /// Forwards between interfaces as a bridge does, with explicit feedback to the packets that want it
    Router(Router),
    /// Emulates a link between two interfaces: rate, delay, queue, losses
    Link(Link),
    /// Measures capacity and available bandwidth of the path to `explicated recv`
    Probe(Probe),
    /// Makes a key that `recv` and `send` share
    Keygen(Keygen),
    /// Says which protocol serves a path best, by a table made with the simulator
    Advise(Advise),
    /// Prints the man page, or a shell's completions, for packagers
    #[command(hide = true)]
    Generate {
        /// `man`, or the name of a shell: bash, zsh, fish
        what: String,
    },
    /// Runs a scenario on real sockets, in network namespaces of this machine
    Lab(Lab),
}

/// `explicated lab`.
#[derive(Args, Debug)]
pub struct Lab {
    /// The scenario file
    pub scenario: PathBuf,
    /// Changes a key of the scenario, like `--set duration=10s`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Lets the kernel's TCP carry a group of flows, by one of the laws in `sysctl net.ipv4.tcp_available_congestion_control`
    #[arg(long, value_name = "GROUP=LAW")]
    pub kernel: Vec<String>,
    /// Prints the commands that build the topology, and runs nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Prints the tables of flows and links as JSON
    #[arg(long)]
    pub json: bool,
    /// Ends, and cleans up, when the program that started it does
    #[arg(long)]
    pub with_parent: bool,
    /// Writes all tables as CSV into this folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// `explicated send`.
#[derive(Args, Debug)]
pub struct Send {
    /// The receiver: a name or IPv4 address, `host` or `host:port`
    pub peer: String,
    /// File to send (default: filler data)
    pub file: Option<PathBuf>,
    /// Preset, protocol, or law/recovery; `explicated advise` says which serves a path best
    #[arg(short, long, default_value = DEFAULT_SENDER)]
    pub protocol: String,
    /// A parameter of law, recovery or flow, like `--param ecn=true`
    #[arg(long = "param", value_name = "KEY=VALUE")]
    pub params: Vec<String>,
    /// IP length of a full packet; by default 1500B, and never more than the path is found to carry
    #[arg(long)]
    pub packet: Option<String>,
    /// Flows at a time (not with a file)
    #[arg(short = 'P', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub flows: u32,
    /// How long to send, seconds
    #[arg(short, long, default_value_t = 10.0, value_parser = some_seconds)]
    pub time: f64,
    /// Send this many bytes of payload in each flow, and be done then
    #[arg(short = 'n', long, value_name = "BYTES", conflicts_with = "file")]
    pub bytes: Option<u64>,
    /// Seconds between lines of progress; 0 is none
    #[arg(short, long, default_value_t = 1.0, value_parser = seconds)]
    pub interval: f64,
    /// Prints a report as JSON in the shape of iperf3's
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Writes window, round-trip time and all variables of the flows over time into this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
    /// The fastest that this host's interface can be, Mbit/s
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub interface_mbps: u64,
    /// The key that both ends have, made by `explicated keygen`
    #[arg(short, long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Give up after so many seconds without an answer
    #[arg(long, default_value_t = 120.0, value_parser = some_seconds)]
    pub patience: f64,
    /// Behave as TCP while no router answers; `off` harms all others on a path without routers, so it is for networks of your own
    #[arg(long, value_enum, default_value_t = Guard::On)]
    pub guard: Guard,
    /// The share of packets that the air may lose, like 2%, which is the default: more is a sign of congestion where no router answers
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub air_loss: Option<f64>,
}

/// Whether explicit flows behave as TCP while no router answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Guard {
    /// They do.
    On,
    /// They do not.
    Off,
}

/// `explicated recv`.
#[derive(Args, Debug)]
pub struct Recv {
    /// The address to listen at
    #[arg(short, long, default_value = "0.0.0.0:49407")]
    pub bind: std::net::SocketAddrV4,
    /// Takes only what is sent with this key, made by `explicated keygen`
    #[arg(short, long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Takes what anybody sends: without a key, and not only from this machine
    #[arg(long, conflicts_with = "key")]
    pub open: bool,
    /// The folder for files that arrive; without it none is taken. Its user has to be the one that runs this: not even root writes into
    /// another's
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Lets a file that arrives take the place of one that has its name; without it such a file is refused
    #[arg(long, requires = "to")]
    pub replace: bool,
    /// Most bytes that the folder's files may have together, those on their way included; without it as many as the disk has but for a
    /// twentieth (1 GiB at most)
    #[arg(long, value_name = "BYTES", requires = "to")]
    pub quota: Option<u64>,
    /// Keep what has arrived of an unfinished file for so many seconds, so that the same file from the same address goes on there
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400.0, value_parser = seconds)]
    pub keep_parts: f64,
    /// Ends after the first flow, with status 0 only if all of it arrived
    #[arg(short = '1', long)]
    pub once: bool,
    /// Seconds between lines of progress; 0 is none
    #[arg(short, long, default_value_t = 1.0, value_parser = seconds)]
    pub interval: f64,
    /// Prints every event as a JSON object a line
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Forget a flow of which nothing is heard for so many seconds
    #[arg(long, default_value_t = 150.0, value_parser = some_seconds)]
    pub idle: f64,
    /// Most flows at a time
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub flows: u32,
    /// Most flows at a time from one address
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub flows_per_source: u32,
    /// Most segments that a flow may be ahead of what has arrived in order
    #[arg(long, default_value_t = 1 << 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub window: u32,
    /// Serves counters to Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Most megabytes of memory for what waits for those before it, all flows together
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub memory: u32,
}

/// `explicated keygen`.
#[derive(Args, Debug)]
pub struct Keygen {
    /// The new file, which only its owner may read
    pub file: PathBuf,
}

/// `explicated router`.
#[derive(Args, Debug)]
pub struct Router {
    /// Interface with its qdisc and router, as in a scenario's `[[link]]`: `eth1` or
    /// `eth1: rate = "50Mbit/s", queue = { kind = "droptail", limit = "250kB" }`
    #[arg(long = "port", value_name = "INTERFACE[: PROPERTIES]", required = true)]
    pub ports: Vec<String>,
    /// This router's own address: for protocols whose routers speak with each other
    #[arg(short, long)]
    pub address: Option<std::net::Ipv4Addr>,
    /// The protocol whose controllers the ports get that have a rate
    #[arg(short, long, default_value = DEFAULT_EXPLICIT)]
    pub controller: String,
    /// While busy, looks for frames once some dozens have come, or after so many microseconds: they are handed on later by up to that,
    /// and cost less. 0 is at once, and so it is with --address, because what measures has to be prompt
    #[arg(long, value_name = "US", default_value_t = 800, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub coalesce: u64,
    /// What both forwarders have
    #[command(flatten)]
    pub common: Forwarding,
}

/// `explicated link`.
#[derive(Args, Debug)]
pub struct Link {
    /// One interface
    pub a: String,
    /// The other
    pub b: String,
    /// What the link from A to B is like, as in a scenario's `[[link]]`: `rate = "50Mbit/s", delay = "20ms"`
    #[arg(long, default_value = "")]
    pub there: String,
    /// What the link from B to A is like; without it like the other
    #[arg(long)]
    pub back: Option<String>,
    /// Frames from A get the tag of this VLAN (IEEE 802.1Q), and those from B lose it: B is a trunk then
    #[arg(long, value_name = "VID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub tag: Option<u16>,
    /// What both forwarders have
    #[command(flatten)]
    pub common: Forwarding,
}

/// What routers and links have in common.
#[derive(Args, Debug)]
pub struct Forwarding {
    /// Seed of all draws
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Ends after so many seconds; without it when told to by a signal
    #[arg(short, long, value_parser = some_seconds)]
    pub time: Option<f64>,
    /// Seconds between reports; 0 is one at the end
    #[arg(short, long, default_value_t = 0.0, value_parser = seconds)]
    pub interval: f64,
    /// Reports as a JSON object a line
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Serves counters to Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Run with real-time scheduling (SCHED_RR)
    #[arg(long)]
    pub real_time: bool,
}

/// `explicated probe`.
#[derive(Args, Debug)]
pub struct Probe {
    /// The other end: a name or IPv4 address, `host` or `host:port`
    pub peer: String,
    /// What estimates the available bandwidth: one of the core's estimators that send probes
    #[arg(short, long, default_value = "delay_trend")]
    pub estimator: String,
    /// The key that both ends have, made by `explicated keygen`
    #[arg(short, long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// How long to measure, seconds
    #[arg(short, long, default_value_t = 10.0, value_parser = some_seconds)]
    pub time: f64,
    /// Prints the result as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// `explicated advise`.
#[derive(Args, Debug)]
pub struct Advise {
    /// The other end, where `explicated recv` runs, whose path is probed: a name or IPv4 address; without it the path is as the
    /// options say
    pub peer: Option<String>,
    /// The key that both ends have, made by `explicated keygen`
    #[arg(long, value_name = "FILE", requires = "peer")]
    pub key: Option<PathBuf>,
    /// Round trip of the path, like 600ms
    #[arg(long)]
    pub rtt: Option<String>,
    /// Packets that the path loses without being full, each way, like 1%
    #[arg(long)]
    pub loss: Option<String>,
    /// Rate of the path's narrowest place, like 20Mbit/s
    #[arg(long)]
    pub rate: Option<String>,
    /// What the routers at the narrow places speak: `explicated router -c` of these, or none
    #[arg(long, value_delimiter = ',', value_name = "CONTROLLERS")]
    pub routers: Vec<String>,
    /// How long to probe, seconds
    #[arg(short, long, default_value_t = 5.0, value_parser = some_seconds)]
    pub time: f64,
    /// Prints the advice as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}
