# A chain of 802.11 radios in ns-2, the counterpart of validation/dcf.py: one TCP SACK flow from the first to the last.
#
#     ns chain.tcl STATIONS SPACING_M DATA_RATE BASIC_RATE WINDOW SEED SECONDS
#
# Prints IP Mbit/s of data over SECONDS, packets sent again, and seconds in which nothing new was acknowledged. Made equal to ours: slots, gaps, windows and retry limits of
# 802.11a, a preamble of 20 us, RTS and CTS for every frame, queues of 50, packets with all headers on the air (ns-2 has no LLC
# header, so its packets are 8 bytes longer; acknowledgements have 52 bytes). DSDV finds the routes, and has 200 s for it; its own
# packets are few, and it does not hear of failures from the MAC.
foreach {stations spacing rate basic window seed seconds} $argv break
ns-random $seed
Mac/802_11 set SlotTime_ 0.000009
Mac/802_11 set SIFS_ 0.000016
Mac/802_11 set CWMin_ 15
Mac/802_11 set CWMax_ 1023
Mac/802_11 set PreambleLength_ 96
Mac/802_11 set PLCPHeaderLength_ 24
Mac/802_11 set PLCPDataRate_ 6.0e6
Mac/802_11 set dataRate_ $rate
Mac/802_11 set basicRate_ $basic
Mac/802_11 set RTSThreshold_ 0
Mac/802_11 set ShortRetryLimit_ 7
Mac/802_11 set LongRetryLimit_ 4
Agent/TCPSink set packetSize_ 60

set ns [new Simulator]
$ns trace-all [open /dev/null w]
set ground [new Topography]
$ground load_flatgrid 20000 1000
create-god $stations
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $ground \
    -agentTrace OFF -routerTrace OFF -macTrace OFF
for {set i 0} {$i < $stations} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ [expr 100 + $i * $spacing]
    $node($i) set Y_ 500
    $node($i) set Z_ 0
}
set tcp [new Agent/TCP/Sack1]
set sink [new Agent/TCPSink/Sack1]
$ns attach-agent $node(0) $tcp
$ns attach-agent $node([expr $stations - 1]) $sink
$ns connect $tcp $sink
$tcp set window_ $window
$tcp set packetSize_ 1468
$tcp set tcpTick_ 0.001
$tcp set minrto_ 0.2
$tcp set windowInit_ 3
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 200.0 "$ftp start"
$ns at 210.0 {set before [$tcp set ack_]; set again [$tcp set nrexmitpack_]}
set silent 0
proc watch {last} {
    global ns tcp silent
    set acked [$tcp set ack_]
    if {$acked == $last} { incr silent }
    $ns at [expr [$ns now] + 1.0] "watch $acked"
}
$ns at 210.0 "watch -1"
$ns at [expr 210.001 + $seconds] {
    puts "result [expr ([$tcp set ack_] - $before) * 1500 * 8.0 / $seconds / 1e6] [expr [$tcp set nrexmitpack_] - $again] $silent"
    exit 0
}
$ns run
