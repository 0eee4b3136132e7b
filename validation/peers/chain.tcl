# Paper I's figure 2 under ns-2 2.35; prints one JSON object.
#
#   ns chain.tcl -case c -delay 10 -buffer 1
#
#   sender --80-- r1 --80-- r2 --30-- r3 --80-- receiver      Mbit/s
#
# Case a: TCP over plain routers; b: XCP over XCP routers; c: XCP, and the link between r2 and r3 is plain.

set options {
    -case      a      "a | b | c"
    -delay     10     "ms, of each link"
    -buffer    1      "of routers' ports, in bandwidth-delay products of the port's rate and the flow's RTT"
    -duration  60     "s"
    -warmup    0      "s, left out of what is measured"
    -packet    1000   "bytes on the wire, headers included"
    -tick      0.001  "s, granularity of the sender's clock"
    -seed      1      "of ns-2's default generator (XCP's timers)"
}

proc fail {message} {
    global options
    puts stderr "chain.tcl: $message"
    foreach {name default help} $options { puts stderr [format "  %-11s %-7s %s" $name $default $help] }
    exit 2
}
foreach {name default help} $options { set opt($name) $default }
foreach {name value} $argv {
    if {![info exists opt($name)] || $value eq ""} { fail "unknown or empty option $name" }
    set opt($name) $value
}
if {[lsearch {a b c} $opt(-case)] < 0} { fail "unknown case $opt(-case)" }
foreach name {delay buffer duration warmup packet} { set $name $opt(-$name) }
if {$warmup >= $duration} { fail "the warm-up must end before the run" }
set xcp [expr {$opt(-case) ne "a"}]

remove-all-packet-headers
add-packet-header IP TCP Flags
if {$xcp} { add-packet-header XCP }
set ns [new Simulator]
ns-random $opt(-seed)
Agent/TCP set window_ 1000000     ;# packets: the receiver never limits
Agent/TCP set tcpTick_ $opt(-tick)
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ $packet
Agent/TCP set overhead_ 0         ;# no processing time
Agent/TCP set timestamps_ true
Agent/TCP set ts_resetRTO_ true   ;# the first new ACK ends a back-off

set rtt [expr {8 * $delay / 1e3}]
proc join_nodes {from to mbps plain host} {
    global ns delay rtt buffer packet xcp
    set type [expr {$xcp && !$plain ? "XCP" : "DropTail"}]
    $ns duplex-link $from $to ${mbps}Mb ${delay}ms $type
    foreach {a b} [list $from $to $to $from] {
        # ns-2's limit counts the arriving packet; the port of a host never drops
        set limit [expr {round($buffer * $mbps * 1e6 * $rtt / (8.0 * $packet)) + 1}]
        $ns queue-limit $a $b [expr {$a eq $host ? 10000000 : $limit}]
        if {$type eq "XCP"} { [[$ns link $a $b] queue] set-link-capacity [expr {$mbps * 1e6}] }
    }
}
foreach name {sender r1 r2 r3 receiver} { set $name [$ns node] }
join_nodes $sender $r1 80 0 $sender
join_nodes $r1 $r2 80 0 ""
join_nodes $r2 $r3 30 [expr {$opt(-case) eq "c"}] ""
join_nodes $r3 $receiver 80 0 $receiver
set narrow [$ns link $r2 $r3]

set tcp [new [expr {$xcp ? "Agent/TCP/Reno/XCP" : "Agent/TCP/Newreno"}]]
set sink [new [expr {$xcp ? "Agent/TCPSink/XCPSink" : "Agent/TCPSink"}]]
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp start"

set monitor [$narrow init-monitor $ns "" 0]
set waiting {}
set widest 0
proc sample {} {
    global ns tcp monitor warmup waiting widest
    if {[$ns now] >= $warmup} { lappend waiting [$monitor set pkts_] }
    set widest [expr {max($widest, [$tcp set cwnd_])}]
    $ns at [expr {[$ns now] + 0.01}] sample
}
proc begin {} {
    global tcp monitor acked departed dropped timeouts
    set acked [$tcp set ack_]
    set departed [$monitor set bdepartures_]
    set dropped [$monitor set pdrops_]
    set timeouts [$tcp set nrexmit_]
}
proc finish {} {
    global opt tcp monitor packet duration warmup waiting widest acked departed dropped timeouts
    set seconds [expr {1.0 * $duration - $warmup}]
    set sum 0.0
    foreach value $waiting { set sum [expr {$sum + $value}] }
    set goodput [expr {([$tcp set ack_] - max($acked, 0)) * 8.0 * $packet / $seconds}]
    set bytes [expr {([$monitor set bdepartures_] - $departed) * 8 / ($seconds * 30e6)}]
    lappend out "\"version\": \"ns-2 [ns-version]\"" "\"case\": \"$opt(-case)\"" "\"goodput_bps\": \[$goodput\]"
    lappend out "\"utilisation\": $bytes" "\"queue_mean_packets\": [expr {$sum / [llength $waiting]}]"
    lappend out "\"drops_measured\": [expr {int([$monitor set pdrops_] - $dropped)}]"
    lappend out "\"window_max_packets\": $widest"
    lappend out "\"timeouts\": [expr {int([$tcp set nrexmit_] - $timeouts)}]"
    puts "{[join $out {, }]}"
    exit 0
}
$ns at 0 sample
$ns at $warmup begin
$ns at $duration finish
$ns run
