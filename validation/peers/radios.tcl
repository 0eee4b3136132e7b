# One flow along a chain of 802.11 radios, 200 m apart, in ns-2 2.35: XCP with a configured capacity, or TCP SACK with losses.
#
#     ns radios.tcl -stations 2 -agent Reno/XCP -capacity 54 -window 200 -seed 1
#
# Prints "result": Mbit/s of packets with their headers, timeouts, packets sent again. As validation/chain.tcl: 802.11a's
# slots, gaps, windows and retry limits, RTS and CTS for every frame, DSDV, which has 200 s to find routes. Packets have
# 1500 bytes and 8 of LLC; their headers are in it, so that an XCP sender counts feedback in what the router counts.
array set opt {-agent Sack1 -stations 2 -capacity 54 -window 200 -queue 100 -loss 0 -reset true -timestamps true -seed 1 -duration 60}
set known [array size opt]
array set opt $argv
if {[array size opt] != $known} { puts stderr "unknown option in: $argv"; exit 2 }
ns-random $opt(-seed)
foreach {name value} {
    SlotTime_ 0.000009 SIFS_ 0.000016 CWMin_ 15 CWMax_ 1023 PreambleLength_ 96 PLCPHeaderLength_ 24 PLCPDataRate_ 6.0e6
    dataRate_ 54e6 basicRate_ 24e6 RTSThreshold_ 0 ShortRetryLimit_ 7 LongRetryLimit_ 4
} { Mac/802_11 set $name $value }
set xcp [string match *XCP $opt(-agent)]
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1508
Agent/TCP set window_ $opt(-window)
Agent/TCP set windowInit_ 3
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.001
Agent/TCP set timestamps_ $opt(-timestamps)
Agent/TCP set ts_resetRTO_ $opt(-reset)
Agent/TCPSink set packetSize_ [expr {$xcp ? 80 : 60}]
# RED, in which an XCP queue keeps what is not XCP (here, routing), wants to know a link; radios have none.
Queue/XCP instproc link {radio} {}
Queue/XCP instproc create-vqueues {} {
    $self instvar vq_
    $self set-xcpQ [set vq_(0) [new Queue/DropTail/XCPQ]]
    $self set-tcpQ [set vq_(1) [new Queue/DropTail]]
    $self set-otherQ [set vq_(2) [new Queue/DropTail]]
}

set ns [new Simulator]
$ns trace-all [open /dev/null w]
set ground [new Topography]
$ground load_flatgrid 20000 1000
create-god $opt(-stations)
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/[expr {$xcp ? "XCP" : "DropTail"}] \
    -ifqLen $opt(-queue) -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $ground -agentTrace OFF -routerTrace OFF -macTrace OFF
for {set i 0} {$i < $opt(-stations)} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ [expr {100 + 200 * $i}]
    $node($i) set Y_ 500
    $node($i) set Z_ 0
    set queue [$node($i) set ifq_(0)]
    if {$xcp} {
        $queue set-link-capacity [expr {$opt(-capacity) * 1e6}]
        $queue queue-limit $opt(-queue)
    }
    if {$opt(-loss) > 0} { ;# in the kernel: between the link layer and its queue
        set draws [new RNG]
        $draws seed [expr {1000 * $opt(-seed) + 17 * $i}]
        set uniform [new RandomVariable/Uniform]
        $uniform use-rng $draws
        set errors [new ErrorModel]
        $errors unit pkt
        $errors set rate_ $opt(-loss)
        $errors ranvar $uniform
        $errors target $queue
        $errors drop-target [new Agent/Null]
        [$node($i) set ll_(0)] down-target $errors
    }
}
set tcp [new Agent/TCP/$opt(-agent)]
set sink [new Agent/TCPSink/[expr {$xcp ? "XCPSink" : "Sack1"}]]
$ns attach-agent $node(0) $tcp
$ns attach-agent $node([expr {$opt(-stations) - 1}]) $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 200.0 "$ftp start"
$ns at [expr {200.0 + $opt(-duration)}] {
    puts "result [expr {[$tcp set ack_] * 1500 * 8e-6 / $opt(-duration)}] [$tcp set nrexmit_] [$tcp set nrexmitpack_]"
    exit 0
}
$ns run
