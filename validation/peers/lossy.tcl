# One TCP flow over a wire that loses packets at random, in ns-2 2.35.
#
#     ns lossy.tcl -agent Sack1 -loss 0.05 -seed 1
#
# Prints "result": Mbit/s of packets with their headers, timeouts, packets sent again. 1500-byte packets, 25 Mbit/s, a
# round trip of 3 ms, queues that never drop, a receiver that allows 200 packets.
array set opt {-agent Sack1 -loss 0.05 -ackloss 0.05 -reset true -seed 1 -duration 100 -careful true}
set known [array size opt]
array set opt $argv
if {[array size opt] != $known} { puts stderr "unknown option in: $argv"; exit 2 }
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
ns-random $opt(-seed)
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1500
Agent/TCP set window_ 200
Agent/TCP set windowInit_ 3
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.001
Agent/TCP set timestamps_ true            ;# without, ts_resetRTO_ does nothing
Agent/TCP set ts_resetRTO_ $opt(-reset)   ;# the next acknowledgement of new data ends back-off
Agent/TCP set bugFix_ $opt(-careful)      ;# no episode before all that the last one began with is passed

set from [$ns node]
set to [$ns node]
$ns duplex-link $from $to 25Mb 1.5ms DropTail
# Each direction loses by a stream of its own.
proc losing {a b rate stream} {
    global ns opt
    $ns queue-limit $a $b 10000
    if {$rate == 0} { return }
    set draws [new RNG]
    $draws seed [expr {1000 * $opt(-seed) + $stream}]
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $draws
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $rate
    $errors ranvar $uniform
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $a $b
}
losing $from $to $opt(-loss) 7
losing $to $from $opt(-ackloss) 531

set tcp [new Agent/TCP/$opt(-agent)]
set sink [new Agent/[expr {$opt(-agent) eq "Sack1" ? "TCPSink/Sack1" : "TCPSink"}]]
$ns attach-agent $from $tcp
$ns attach-agent $to $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp start"
$ns at $opt(-duration) {
    puts "result [expr {[$tcp set ack_] * 1500 * 8e-6 / $opt(-duration)}] [$tcp set nrexmit_] [$tcp set nrexmitpack_]"
    exit 0
}
$ns run
