# Paper D's network under ns-2 2.35: ten flows, 5 Mbit/s, half of them over a link that loses packets.
#
#   ns paper_003.tcl Reno 5 1              TCP Reno, 5 % loss, seed 1
#   ns paper_003.tcl Reno/XCP 5 1 0.0016   XCP, hosts that take up to 1.6 ms for a packet
#   ns paper_003.tcl Reno 5 1 0 old        ns-2's timers of 2001: clock of 0.1 s, at least 1 s, no limited transmit
#
# Prints the fairness ratio (bytes that enter the lossy link over those that enter the other one, from 20 to 200 s) and the
# bottleneck's utilisation. In docs/validation.md, section on paper D.

lassign $argv protocol loss seed overhead timers duplicates
if {$overhead eq ""} { set overhead 0 }
if {$timers eq "old"} {
    Agent/TCP set tcpTick_ 0.1
    Agent/TCP set minrto_ 1.0
    Agent/TCP set singledup_ 0
}
if {$duplicates ne ""} { Agent/TCP set numdupacks_ $duplicates }
Agent/TCP set window_ 1000
Agent/TCP set overhead_ $overhead
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000
Queue set limit_ 50
set seconds 200
set xcp [string match *XCP $protocol]
set policy [expr {$xcp ? "XCP" : "DropTail"}]

remove-all-packet-headers
add-packet-header IP TCP Flags XCP
set ns [new Simulator]
ns-random $seed
set starts [new RNG]
$starts seed $seed

proc join {a b} {
    global ns policy xcp
    $ns duplex-link $a $b 5Mb 20ms $policy
    if {$xcp} {
        foreach {from to} [list $a $b $b $a] { [[$ns link $from $to] queue] set-link-capacity 5e6 }
    }
}
foreach name {n0 n1 n2 n3} { set $name [$ns node] }
join $n0 $n1
join $n1 $n2
join $n1 $n3
if {$loss > 0} {
    set losses [new ErrorModel]
    $losses unit pkt
    $losses set rate_ [expr {$loss / 100.0}]
    $losses ranvar [new RandomVariable/Uniform]
    $losses drop-target [new Agent/Null]
    $ns link-lossmodel $losses $n1 $n3
}
for {set i 0} {$i < 10} {incr i} {
    set source [$ns node]
    join $source $n0
    set tcp [new Agent/TCP/$protocol]
    set sink [expr {$xcp ? "Agent/TCPSink/XCPSink" : $protocol eq "Sack1" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]
    set sink [new $sink]
    $ns attach-agent $source $tcp
    $ns attach-agent [expr {$i < 5 ? $n2 : $n3}] $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [$starts uniform 0 1] "$ftp start"
}

set bottleneck [$ns monitor-queue $n0 $n1 ""]
set clean [$ns monitor-queue $n1 $n2 ""]
set lossy [$ns monitor-queue $n1 $n3 ""]
proc counts {} {
    global bottleneck clean lossy
    list [$bottleneck set bdepartures_] [$clean set barrivals_] [$lossy set barrivals_]
}
$ns at 20 { set before [counts] }
$ns at $seconds {
    foreach now [counts] then $before { lappend bytes [expr {$now - $then}] }
    lassign $bytes all clean_bytes lossy_bytes
    puts [format "ratio %.3f utilisation %.4f" [expr {double($lossy_bytes) / $clean_bytes}] \
        [expr {$all * 8 / 5e6 / ($seconds - 20)}]]
    exit 0
}
$ns run
