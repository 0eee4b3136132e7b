//! The command line.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand};
use explicate_core::presets::{DEFAULT_EXPLICIT, DEFAULT_SENDER, STACK_NAMES};

/// A number of seconds, at most ten years.
fn seconds(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|s| (0.0..=3.2e8).contains(s));
    found.ok_or_else(|| "seconds, a number from 0 to 3.2e8".to_string())
}

/// A number of seconds above zero.
fn some_seconds(text: &str) -> Result<f64, String> {
    seconds(text).ok().filter(|s| *s > 0.0).ok_or_else(|| "seconds, a number above 0 and up to 3.2e8".to_string())
}

/// A number of bytes, with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| explicate_scenario::bytes(text))
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

/// The version, with the commit where the build names one (EXPLICATE_COMMIT).
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("EXPLICATE_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_string(),
    });
    &VERSION
}

/// Explicit congestion control between Linux hosts.
#[derive(Parser, Debug)]
#[command(name = "explicated", version = version(), about, propagate_version = true)]
#[command(after_help = "Exit status: 0 for success, 1 for a failure or an interruption, 2 for invalid arguments.")]
pub struct Cli {
    /// Log more to stderr; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Log as JSON, one object per line.
    #[arg(long, global = true)]
    pub log_json: bool,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Sends to `explicated recv`, encrypted (QUIC): files and folders, or filler for a time or a number of bytes
    Send(Send),
    /// Receives what paired senders send by `explicated send`
    Recv(Recv),
    /// Forwards between interfaces like a bridge, and writes feedback into packets of explicit protocols
    Router(Router),
    /// Emulates a link between two interfaces: rate, delay, queue, losses
    Link(Link),
    /// Measures capacity and available bandwidth of the path to a paired `explicated recv`
    Probe(Probe),
    /// Recommends a protocol for a path, from a table made with the simulator
    Advise(Advise),
    /// Prints the man page, or completions for a shell, for packagers
    #[command(hide = true)]
    Generate {
        /// `man`, or the name of a shell: bash, zsh, fish
        what: String,
    },
    /// Runs a scenario on real sockets, in network namespaces of this machine
    Lab(Lab),
    /// Carries the TCP connections of a site to another gateway, under explicit congestion control
    #[command(subcommand)]
    Gateway(Gateway),
}

/// `explicated gateway`.
#[derive(Subcommand, Debug)]
pub enum Gateway {
    /// Creates the key of this gateway, and prints the line that goes into the configuration of its peers
    Keygen {
        /// The new file, readable by its owner only
        file: PathBuf,
    },
    /// Checks the configuration, and prints what would be set up
    Check(GatewayConfig),
    /// Runs the gateway until a signal
    Run(GatewayConfig),
    /// Shows the state of the running gateway
    Status {
        /// Where the configuration is
        #[command(flatten)]
        config: GatewayConfig,
        /// Print it as JSON
        #[arg(short = 'J', long)]
        json: bool,
        /// Show it again every so many seconds, with the rates since the time before
        #[arg(short, long, value_name = "SECONDS", value_parser = some_seconds)]
        interval: Option<f64>,
        /// Watch it on one screen, every second or `--interval`: sites, line, who uses it, who waits for whom
        #[arg(short, long, conflicts_with = "json")]
        watch: bool,
    },
    /// Names what limits the transfers now, the cause whose removal gains most first, and what to do about it
    Why(GatewayConfig),
    /// Sets nftables, routes and sysctls up
    Up(GatewayConfig),
    /// Restores nftables, routes and sysctls
    Down {
        /// Where the configuration is
        #[command(flatten)]
        config: GatewayConfig,
        /// With `when_down = "reset"`, keep connections to networks of peers refused (for the service's end)
        #[arg(long)]
        stopped: bool,
    },
}

/// Where the configuration is.
#[derive(Args, Debug)]
pub struct GatewayConfig {
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = "/etc/explicated/gateway.toml")]
    pub config: PathBuf,
}

/// `explicated lab`.
#[derive(Args, Debug)]
pub struct Lab {
    /// The scenario file
    pub scenario: PathBuf,
    /// Override a key of the scenario, as in `--set duration=10s`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Run a group of flows over the kernel's TCP, with a congestion control from `sysctl net.ipv4.tcp_available_congestion_control`
    #[arg(long, value_name = "GROUP=CONTROLLER")]
    pub kernel: Vec<String>,
    /// Print the commands that build the topology, without running anything
    #[arg(long)]
    pub dry_run: bool,
    /// Print the tables of flows and links as JSON
    #[arg(long)]
    pub json: bool,
    /// Stop and clean up when the parent process ends
    #[arg(long)]
    pub with_parent: bool,
    /// Write all tables as CSV into this folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// `explicated send`.
#[derive(Args, Debug)]
pub struct Send {
    /// The receiver: a name or an address, `host`, `host:port` or `[IPv6]:port`
    pub peer: String,
    /// Files and folders to send (default: filler data)
    pub files: Vec<PathBuf>,
    /// This end's keys
    #[command(flatten)]
    pub keys: Keys,
    /// Protocol; of a preset its protocol and parameters are used, not its recovery. `explicated advise` recommends one for
    /// a path
    #[arg(short, long, default_value = DEFAULT_SENDER)]
    pub protocol: String,
    /// Parameter of the protocol, as in `--param on_loss=halve`
    #[arg(long = "param", value_name = "KEY=VALUE")]
    pub params: Vec<String>,
    /// Whose TCP moves the window: that of an end-to-end protocol, and that to which an explicit one falls back
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(STACK_NAMES))]
    pub stack: Option<String>,
    /// Number of parallel flows (not with a file)
    #[arg(short = 'P', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub flows: u32,
    /// Duration of a transfer of filler data, seconds
    #[arg(short, long, default_value_t = 10.0, value_parser = some_seconds, conflicts_with = "files")]
    pub time: f64,
    /// Bytes of payload to send in each flow, instead of a duration
    #[arg(short = 'n', long, value_name = "BYTES", conflicts_with = "files")]
    pub bytes: Option<u64>,
    /// Seconds between lines of progress; 0 is none
    #[arg(short, long, default_value_t = 1.0, value_parser = seconds)]
    pub interval: f64,
    /// Print a report as JSON in the format of iperf3
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Write window, round-trip time and all variables of the flows over time to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
    /// Highest rate of this host's interface, Mbit/s
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub interface_mbps: u64,
    /// Abort after this many seconds without an answer
    #[arg(long, default_value_t = 120.0, value_parser = some_seconds)]
    pub patience: f64,
    /// Behave as TCP while no router gives feedback; `off` starves other traffic on a path without routers: use it only on a private network
    #[arg(long, value_enum, default_value_t = Guard::On)]
    pub guard: Guard,
    /// Share of packets that may be lost to transmission errors, as in 2% (the default); more counts as congestion where no router gives feedback
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub air_loss: Option<f64>,
}

/// The keys of an end that sends.
#[derive(Args, Debug)]
pub struct Keys {
    /// The line that `recv` prints: pairs this end with it, once
    #[arg(long, value_name = "LINE", requires = "peer")]
    pub pair: Option<String>,
    /// Folder of this end's key and of the receivers that it is paired with (default: `explicate` in the user's configuration)
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// Whether explicit flows behave as TCP while no router gives feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Guard {
    /// They behave as TCP then.
    On,
    /// They ignore missing feedback.
    Off,
}

/// `explicated recv`.
#[derive(Args, Debug)]
pub struct Recv {
    /// The address to listen at (default: port 49407 at all addresses)
    #[arg(short, long)]
    pub bind: Option<std::net::SocketAddr>,
    /// Print the line that pairs a sender, once; it is printed anyway while no sender is paired
    #[arg(long)]
    pub pair: bool,
    /// Folder of this end's key and of the senders that it is paired with (default: `explicate` in the user's configuration)
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Folder for received files; without it files are refused. It has to belong to the user who runs this command: root does not write
    /// into another user's folder either
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Replace existing files of the same name; without it such a file is refused
    #[arg(long, requires = "to")]
    pub replace: bool,
    /// Limit of the folder's size, like 40GB, incomplete files included; the default leaves a twentieth of the disk free
    /// (1 GiB at most)
    #[arg(long, value_name = "BYTES", requires = "to", value_parser = bytes)]
    pub quota: Option<u64>,
    /// Keep an incomplete file for this many seconds, so that a transfer of it by the same sender resumes
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400.0, value_parser = seconds)]
    pub keep_parts: f64,
    /// Stop after the first connection, with status 0 only if all of it arrived completely
    #[arg(short = '1', long)]
    pub once: bool,
    /// Seconds between lines of progress; 0 is none
    #[arg(short, long, default_value_t = 1.0, value_parser = seconds)]
    pub interval: f64,
    /// Print events as JSON, one object per line
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Maximum number of connections at a time
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub flows: u32,
    /// Maximum number of files at a time by one connection
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub flows_per_source: u32,
    /// Serve metrics for Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Memory for data that were not written yet, megabytes: a connection has up to a quarter
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub memory: u32,
}

/// `explicated router`.
#[derive(Args, Debug)]
pub struct Router {
    /// Interface, optionally with its queue and controller as in a scenario's `[[link]]`: `eth1` or
    /// `eth1: rate = "50Mbit/s", queue = { kind = "droptail", limit = "250kB" }`; with `scone = { advise = "45Mbit/s" }`, or
    /// "fair" or "measured", it lowers the advice in SCONE packets of QUIC flows
    #[arg(long = "port", value_name = "INTERFACE[: PROPERTIES]", required = true)]
    pub ports: Vec<String>,
    /// Protocol of the controllers at ports that have a rate
    #[arg(short, long, default_value = DEFAULT_EXPLICIT)]
    pub controller: String,
    /// Under load, forward frames in batches of some dozens, or after this many microseconds: adds that much delay at most and saves
    /// CPU time. 0 forwards at once
    #[arg(long, value_name = "US", default_value_t = 800, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub coalesce: u64,
    /// Options of both forwarders
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
    /// Properties of the link from A to B, as in a scenario's `[[link]]`: `rate = "50Mbit/s", delay = "20ms"`
    #[arg(long, default_value = "")]
    pub there: String,
    /// Properties of the link from B to A (default: those of the other)
    #[arg(long)]
    pub back: Option<String>,
    /// Add the tag of this VLAN (IEEE 802.1Q) to frames from A and remove it from frames from B: B is a trunk
    #[arg(long, value_name = "VID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub tag: Option<u16>,
    /// Options of both forwarders
    #[command(flatten)]
    pub common: Forwarding,
}

/// Options of routers and links.
#[derive(Args, Debug)]
pub struct Forwarding {
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Stop after this many seconds (default: run until a signal)
    #[arg(short, long, value_parser = some_seconds)]
    pub time: Option<f64>,
    /// Seconds between reports; 0 reports once at the end
    #[arg(short, long, default_value_t = 0.0, value_parser = seconds)]
    pub interval: f64,
    /// Report as JSON, one object per line
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Serve metrics for Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Run with real-time scheduling (SCHED_RR)
    #[arg(long)]
    pub real_time: bool,
}

/// `explicated probe`.
#[derive(Args, Debug)]
pub struct Probe {
    /// The receiver: a name or IPv4 address, `host` or `host:port`
    pub peer: String,
    /// Estimator of the available bandwidth: one of the core's that send probes
    #[arg(short, long, default_value = "delay_trend")]
    pub estimator: String,
    /// This end's keys
    #[command(flatten)]
    pub keys: Keys,
    /// Duration of the measurement, seconds
    #[arg(short, long, default_value_t = 10.0, value_parser = some_seconds)]
    pub time: f64,
    /// Print the result as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// `explicated advise`.
#[derive(Args, Debug)]
pub struct Advise {
    /// Probe the path to this paired receiver: a name or IPv4 address; without it the options describe the path
    pub peer: Option<String>,
    /// This end's keys
    #[command(flatten)]
    pub keys: Keys,
    /// Round-trip time of the path, as in 600ms
    #[arg(long)]
    pub rtt: Option<String>,
    /// Share of packets lost without congestion, in each direction, as in 1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub loss: Option<f64>,
    /// Rate of the bottleneck, as in 20Mbit/s
    #[arg(long)]
    pub rate: Option<String>,
    /// Controllers of the routers at the bottlenecks, by the names of `explicated router -c`, or none
    #[arg(long, value_delimiter = ',', value_name = "CONTROLLERS")]
    pub routers: Vec<String>,
    /// Duration of the probing, seconds
    #[arg(short, long, default_value_t = 5.0, value_parser = some_seconds)]
    pub time: f64,
    /// Print the recommendation as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}
