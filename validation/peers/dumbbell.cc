// A dumbbell under ns-3, as lean as ns-3 goes; prints one JSON object. The twin of dumbbell.tcl, with its options:
//
//   dumbbell-ns3 -system sack -rate 100 -rtt 80 -flows 10 -duration 40 -warmup 20
//
//   s0 --\                          /-- d0     one access pair for each flow;
//   s1 --- r1 === bottleneck === r2 --- d1     data goes right, one ACK for each
//   ..  --/                         \-- ..     packet comes back: 3 hops each way
//
// Nothing but static routes, no queue disc and no flow control above the devices: what is left is what ns-3 needs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

std::map<std::string, std::string> options = {
    {"system", "sack"},   // sack | newreno
    {"rate", "100"},      // bottleneck, Mbit/s
    {"rtt", "80"},        // base RTT in ms, transmission times not counted; LO:HI spreads the flows evenly
    {"flows", "10"},      // one access pair each
    {"duration", "40"},   // s
    {"warmup", "20"},     // s, left out of utilisation, goodput and the queue's mean, p95 and max
    {"packet", "1000"},   // bytes on the wire, headers included
    {"buffer", "0"},      // packets that may wait at the bottleneck; 0: one BDP of the mean RTT
    {"access", "0"},      // access links, Mbit/s; 0: four times the bottleneck
    {"spread", "1"},      // s over which the flows start, evenly
    {"sample", "1"},      // 0: watch nothing while running, for timing
};

constexpr double access_delay_ms = 1.0;
constexpr uint32_t headers = 42;  // PPP 2, IP 20, TCP 20: no timestamps

[[noreturn]] void fail(const std::string& message) {
    std::cerr << "dumbbell.cc: " << message << "\n";
    for (const auto& [name, value] : options) std::cerr << "  -" << name << " " << value << "\n";
    std::exit(2);
}

double number(const std::string& name) { return std::stod(options.at(name)); }

// What is counted while the run goes on. A packet that leaves the bottleneck, either way, makes three hops, the one
// before and the one behind included; one that is dropped there has made one.
struct Counts {
    uint64_t right = 0, left = 0, bytes = 0, drops = 0;
    void on_right(Ptr<const Packet> packet) { right++, bytes += packet->GetSize(); }
    void on_left(Ptr<const Packet>) { left++; }
    void on_drop(Ptr<const Packet>) { drops++; }
} counts;

struct Watch {
    Ptr<Queue<Packet>> queue;
    double warmup = 0, rate_bps = 0, time_to_90 = -1;
    uint32_t peak = 0, ticks = 0;
    uint64_t bin = 0;
    std::vector<uint32_t> waiting;
    void sample() {
        const uint32_t now = queue->GetNPackets();
        peak = std::max(peak, now);
        if (ticks % 10 == 0 && ticks / 1e3 >= warmup) waiting.push_back(now);
        if (ticks % 100 == 0 && time_to_90 < 0) {
            if ((counts.bytes - bin) * 8.0 >= 0.9 * rate_bps * 0.1) time_to_90 = ticks / 1e3;
            bin = counts.bytes;
        }
        ticks++;
        Simulator::Schedule(MilliSeconds(1), &Watch::sample, this);
    }
} watch;

std::vector<Ptr<PacketSink>> sinks;
std::vector<uint64_t> marked;
Counts mark;

void end_of_warmup() {
    mark = counts;
    for (const auto& sink : sinks) marked.push_back(sink->GetTotalRx());
}

NetDeviceContainer connect(Ptr<Node> a, Ptr<Node> b, double mbps, double ms, uint64_t limit) {
    PointToPointHelper link;
    link.DisableFlowControl();  // with it, addresses would bring queue discs along
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(std::llround(mbps * 1e6)))));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::llround(ms * 1e6))));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limit)));
    static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    NetDeviceContainer devices = link.Install(a, b);
    addresses.Assign(devices);
    addresses.NewNetwork();
    return devices;
}

Ipv4Address address_of(Ptr<Node> node, uint32_t interface) {
    return node->GetObject<Ipv4>()->GetAddress(interface, 0).GetLocal();
}

// All that `node` does not know goes out of `interface` to `next`.
void route(Ptr<Node> node, Ipv4Address next, uint32_t interface) {
    Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(next, interface);
}

void configure(uint32_t packet, uint64_t window_bytes) {
    const std::string system = options.at("system");
    if (system != "sack" && system != "newreno") fail("unknown system " + system);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(system == "sack"));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(packet - headers));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window_bytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1u << 29));
}

// The most memory that this process had.
uint64_t peak_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) return 1024 * std::stoull(line.substr(6));
    return 0;
}

void print(double measured_s, uint32_t packet, uint64_t buffer) {
    std::printf("{\"version\": \"ns-3\", \"system\": \"%s\", \"flows\": %zu, \"buffer_packets\": %llu",
                options.at("system").c_str(), sinks.size(), (unsigned long long)buffer);
    std::printf(", \"hops\": %llu", (unsigned long long)(3 * (counts.right + counts.left) + counts.drops));
    std::printf(", \"peak_bytes\": %llu", (unsigned long long)peak_bytes());
    std::printf(", \"drops\": %llu, \"drops_measured\": %llu, \"goodput_bps\": [", (unsigned long long)counts.drops,
                (unsigned long long)(counts.drops - mark.drops));
    for (size_t i = 0; i < sinks.size(); i++) {  // of whole packets, as the twin counts
        const double bytes = double(sinks[i]->GetTotalRx() - marked[i]) * packet / (packet - headers);
        std::printf("%s%.1f", i ? ", " : "", 8 * bytes / measured_s);
    }
    std::printf("]");
    if (!watch.waiting.empty()) {
        auto& sorted = watch.waiting;
        double sum = 0;
        for (uint32_t value : sorted) sum += value;
        std::sort(sorted.begin(), sorted.end());
        const size_t rank = size_t(std::ceil(0.95 * sorted.size())) - 1;
        std::printf(", \"utilisation\": %.6f", (counts.bytes - mark.bytes) * 8 / (measured_s * watch.rate_bps));
        std::printf(", \"queue_mean_packets\": %.3f, \"queue_p95_packets\": %u, \"queue_max_packets\": %u",
                    sum / sorted.size(), sorted[rank], sorted.back());
        std::printf(", \"queue_peak_packets\": %u, \"time_to_90_s\": ", watch.peak);
        watch.time_to_90 < 0 ? std::printf("null") : std::printf("%.1f", watch.time_to_90);
    }
    std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i][0] == '-' ? argv[i] + 1 : argv[i];
        if (i + 1 >= argc || !options.count(name)) fail("unknown or empty option " + name);
        options[name] = argv[i + 1];
    }
    const double rate = number("rate"), duration = number("duration"), warmup = number("warmup");
    const uint32_t flows = number("flows"), packet = number("packet");
    if (warmup >= duration) fail("the warm-up must end before the run");
    const std::string range = options.at("rtt");
    const size_t colon = range.find(':');
    const double low = std::stod(range), high = colon == std::string::npos ? low : std::stod(range.substr(colon + 1));
    const double access = number("access") > 0 ? number("access") : 4 * rate;
    const double delay = low / 2 - 2 * access_delay_ms;
    if (delay < 0) fail("an RTT below 4 ms does not fit");
    const uint64_t bdp = std::llround(1e6 * rate * (low + high) / 2e3 / (8.0 * packet));
    const uint64_t buffer = number("buffer") > 0 ? uint64_t(number("buffer")) : bdp;
    configure(packet, (bdp + buffer) * packet + 65536);  // a sender alone may fill pipe and queue

    Ptr<Node> r1 = CreateObject<Node>(), r2 = CreateObject<Node>();
    NodeContainer sources(flows), targets(flows);
    InternetStackHelper stack;
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    stack.SetIpv6StackInstall(false);
    for (const NodeContainer& nodes : {NodeContainer(r1, r2), sources, targets}) stack.Install(nodes);

    const uint64_t unlimited = 10000000;
    NetDeviceContainer middle = connect(r1, r2, rate, delay, buffer);
    route(r1, address_of(r2, 1), 1);
    route(r2, address_of(r1, 1), 1);
    for (uint32_t i = 0; i < flows; i++) {
        const double rtt = flows < 2 ? low : low + (high - low) * i / (flows - 1);
        connect(sources.Get(i), r1, access, access_delay_ms, unlimited);
        connect(r2, targets.Get(i), access, rtt / 2 - delay - access_delay_ms, unlimited);
        route(sources.Get(i), address_of(r1, i + 2), 1);
        route(targets.Get(i), address_of(r2, i + 2), 1);

        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(address_of(targets.Get(i), 1), 9));
        sender.SetAttribute("SendSize", UintegerValue(packet - headers));
        sender.Install(sources.Get(i)).Start(Seconds(number("spread") * i / flows));
        PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        ApplicationContainer receivers = receiver.Install(targets.Get(i));
        receivers.Start(Seconds(0));
        sinks.push_back(DynamicCast<PacketSink>(receivers.Get(0)));
    }

    auto right = DynamicCast<PointToPointNetDevice>(middle.Get(0)), left = DynamicCast<PointToPointNetDevice>(middle.Get(1));
    right->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Counts::on_right, &counts));
    left->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Counts::on_left, &counts));
    right->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&Counts::on_drop, &counts));
    Simulator::Schedule(Seconds(warmup), &end_of_warmup);
    if (number("sample") != 0) {
        watch.queue = right->GetQueue();
        watch.warmup = warmup;
        watch.rate_bps = rate * 1e6;
        Simulator::ScheduleNow(&Watch::sample, &watch);
    }
    Simulator::Stop(Seconds(duration));
    Simulator::Run();
    print(duration - warmup, packet, buffer);
    std::fflush(stdout);
    std::_Exit(0);  // taking the network down is no part of a run
}
