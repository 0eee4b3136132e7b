# A dumbbell under ns-2 2.35, as fast as ns-2 goes; prints one JSON object.
#
#   ns dumbbell.tcl -system xcp -rate 100 -rtt 80 -flows 10 -duration 40 -warmup 20
#
#   s0 --\                          /-- d0     one access pair for each flow;
#   s1 --- r1 === bottleneck === r2 --- d1     data goes right, one ACK for each
#   ..  --/                         \-- ..     packet comes back: 3 hops each way

set options {
    -system    xcp    "xcp | sack | newreno"
    -rate      100    "bottleneck, Mbit/s"
    -rtt       80     "base RTT in ms, transmission times not counted; LO:HI spreads the flows evenly"
    -flows     10     "one access pair each"
    -duration  40     "s"
    -warmup    20     "s, left out of utilisation, goodput and the queue's mean, p95 and max"
    -packet    1000   "bytes on the wire, headers included"
    -queue     droptail  "of the bottleneck, TCP only: droptail | red:MIN:MAX:WEIGHT:MAX_P (packets,
                       gentle) | rem:GAMMA:PHI:INTERVAL:TARGET (s, packets); both drop"
    -buffer    0      "packets that may wait at the bottleneck; 0: one BDP of the mean RTT"
    -access    0      "access links, Mbit/s; 0: four times the bottleneck"
    -spread    1      "s over which the flows start"
    -starts    even   "even | random, uniform over the spread, by the seed"
    -tick      0.001  "s, granularity of the senders' clock (ns-2's default is 0.01)"
    -reset     0      "1: the first new ACK ends a timer's back-off, by time stamps; 0: a timed packet never resent"
    -opposite  0      "1: every second flow goes from right to left"
    -overhead  0      "s, longest processing time of a packet at its sender, at random"
    -scheduler Splay  "Splay | Heap | Calendar | List"
    -sample    1      "0: watch nothing while running, for timing"
    -monitors  0      "1: count packet-hops by a monitor on every link"
    -seed      1      "of ns-2's default generator (XCP's timers, RED's and REM's draws)"
}
set access_delay 1    ;# ms, of every access link unless RTTs are spread

proc fail {message} {
    global options
    puts stderr "dumbbell.tcl: $message"
    foreach {name default help} $options {
        puts stderr [format "  %-11s %-7s %s" $name $default $help]
    }
    exit 2
}

# --- arguments ------------------------------------------------------------

foreach {name default help} $options { set opt($name) $default }
foreach {name value} $argv {
    if {![info exists opt($name)] || $value eq ""} { fail "unknown or empty option $name" }
    set opt($name) $value
}
if {[lsearch {xcp sack newreno} $opt(-system)] < 0} { fail "unknown system $opt(-system)" }
foreach name {rate flows duration warmup packet spread tick sample monitors seed} {
    set $name $opt(-$name)
}
if {$warmup >= $duration} { fail "the warm-up must end before the run" }

set range [split $opt(-rtt) :]
set rtt_low [lindex $range 0]
set rtt_high [lindex $range end]
set access [expr {$opt(-access) > 0 ? $opt(-access) : 4.0 * $rate}]
set bottleneck_delay [expr {$rtt_low / 2.0 - 2 * $access_delay}]
if {$bottleneck_delay < 0} { fail "an RTT below [expr {4 * $access_delay}] ms does not fit" }
set buffer [expr {$opt(-buffer) > 0 ? $opt(-buffer)
    : round(1e6 * $rate * ($rtt_low + $rtt_high) / 2e3 / (8.0 * $packet))}]

proc rtt_of {flow} {
    global flows rtt_low rtt_high
    return [expr {$flows < 2 ? $rtt_low
        : $rtt_low + 1.0 * ($rtt_high - $rtt_low) * $flow / ($flows - 1)}]
}

# --- ns-2, without what it does not need ----------------------------------

remove-all-packet-headers
add-packet-header IP TCP Flags
if {$opt(-system) eq "xcp"} { add-packet-header XCP }
set ns [new Simulator]
$ns use-scheduler $opt(-scheduler)
ns-random $seed

Agent/TCP set window_ 1000000     ;# packets: the receiver never limits
Agent/TCP set tcpTick_ $tick
Agent/TCP set overhead_ $opt(-overhead)
if {$opt(-reset)} {
    Agent/TCP set timestamps_ true
    Agent/TCP set ts_resetRTO_ true
}
# Without useHeaders_ the wire carries packetSize_ bytes exactly, and an XCP
# sender turns feedback into packets of the size that the router counted.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ $packet

if {$opt(-system) eq "xcp"} {
    set queue_type XCP
    set sender_type Agent/TCP/Reno/XCP
    set sink_type Agent/TCPSink/XCPSink
} else {
    set queue_type DropTail
    if {$opt(-system) eq "sack"} {
        set sender_type Agent/TCP/Sack1
        set sink_type Agent/TCPSink/Sack1
    } else {
        set sender_type Agent/TCP/Newreno
        set sink_type Agent/TCPSink
    }
}

# The bottleneck's queue. Everything in packets of the length that all have.
set discipline [split $opt(-queue) :]
switch [lindex $discipline 0] {
    droptail { set bottleneck_type $queue_type }
    red {
        set bottleneck_type RED
        foreach {parameter value} [list \
            thresh_ [lindex $discipline 1] maxthresh_ [lindex $discipline 2] \
            q_weight_ [lindex $discipline 3] linterm_ [expr {1.0 / [lindex $discipline 4]}] \
            gentle_ true wait_ true setbit_ false adaptive_ 0 bytes_ false queue_in_bytes_ false \
            mean_pktsize_ $packet idle_pktsize_ $packet] { Queue/RED set $parameter $value }
    }
    rem {
        set bottleneck_type REM
        foreach {parameter value} [list \
            gamma_ [lindex $discipline 1] phi_ [lindex $discipline 2] pupdtime_ [lindex $discipline 3] \
            pbo_ [lindex $discipline 4] inw_ 1 markpkts_ false qib_ false mean_pktsize_ $packet] {
            Queue/REM set $parameter $value
        }
    }
    default { fail "unknown queue $opt(-queue)" }
}

# --- links ----------------------------------------------------------------

set links {}
proc connect_nodes {from to mbps ms limit queue_type} {
    global ns links
    $ns duplex-link $from $to ${mbps}Mb ${ms}ms $queue_type
    foreach {a b} [list $from $to $to $from] {
        # ns-2 drops when the waiting packets and the new one reach limit_; RED does not count the new one
        $ns queue-limit $a $b [expr {$queue_type eq "RED" ? $limit : $limit + 1}]
        set link [$ns link $a $b]
        if {$queue_type eq "XCP"} { [$link queue] set-link-capacity [expr {$mbps * 1e6}] }
        lappend links $link
    }
}

set unlimited 10000000
set r1 [$ns node]
set r2 [$ns node]
connect_nodes $r1 $r2 $rate $bottleneck_delay $buffer $bottleneck_type
set bottleneck [$ns link $r1 $r2]
for {set i 0} {$i < $flows} {incr i} {
    set s($i) [$ns node]
    set d($i) [$ns node]
    set last [expr {[rtt_of $i] / 2.0 - $bottleneck_delay - $access_delay}]
    connect_nodes $s($i) $r1 $access $access_delay $unlimited $queue_type
    connect_nodes $r2 $d($i) $access $last $unlimited $queue_type
}

# --- flows ----------------------------------------------------------------

if {[lsearch {even random} $opt(-starts)] < 0} { fail "unknown starts $opt(-starts)" }
set start_times [new RNG]
$start_times seed $seed
proc start_of {flow} {
    global opt spread flows start_times
    return [expr {$spread * ($opt(-starts) eq "random" ? [$start_times uniform 0 1] : 1.0 * $flow / $flows)}]
}

for {set i 0} {$i < $flows} {incr i} {
    set sender($i) [new $sender_type]
    set sink($i) [new $sink_type]
    set left [expr {$opt(-opposite) && $i % 2}]
    $ns attach-agent [expr {$left ? $d($i) : $s($i)}] $sender($i)
    $ns attach-agent [expr {$left ? $s($i) : $d($i)}] $sink($i)
    $ns connect $sender($i) $sink($i)
    $sender($i) set fid_ $i
    set source [new Application/FTP]
    $source attach-agent $sender($i)
    $ns at [start_of $i] "$source start"
}

# --- what is watched ------------------------------------------------------

# Counts only the packets that a link drops: nothing on the path of the others.
proc drop_counter {link} {
    set monitor [new QueueMonitor]
    set snoop [new SnoopQueue/Drop]
    set head [$link set drophead_]
    $snoop target [$head target]
    $snoop set-monitor $monitor
    $head target $snoop
    return $monitor
}

# Every millisecond: the peak. Every 10 ms after the warm-up: the queue.
# Every 100 ms until it is found: the first bin at 90 % of the capacity.
proc sample {k} {
    global ns monitor warmup rate peak queue bin time_to_90
    set now [expr {$k / 1e3}]
    set waiting [$monitor set pkts_]
    if {$waiting > $peak} { set peak $waiting }
    if {$k % 10 == 0 && $now >= $warmup} { lappend queue $waiting }
    if {$k % 100 == 0 && $time_to_90 eq "null"} {
        set departed [$monitor set bdepartures_]
        if {($departed - $bin) * 8.0 >= 0.9 * $rate * 1e5} { set time_to_90 $now }
        set bin $departed
    }
    $ns at [expr {($k + 1) / 1e3}] "sample [expr {$k + 1}]"
}

# Goodput is what the cumulative ACKs say, in packets: the sink's own count of
# bytes is an int and wraps at 2 GiB.
proc end_of_warmup {} {
    global flows sender monitor drops sample mark_acked mark_departed mark_drops
    for {set i 0} {$i < $flows} {incr i} { set mark_acked($i) [$sender($i) set ack_] }
    set mark_drops [$drops set pdrops_]
    if {$sample} { set mark_departed [$monitor set bdepartures_] }
}

set drops [drop_counter $bottleneck]
set monitored {}
if {$monitors} {
    foreach link $links {
        if {$sample && $link eq $bottleneck} { continue }
        lappend monitored [$link init-monitor $ns "" 0]
    }
}
if {$sample} {
    set monitor [$bottleneck init-monitor $ns "" 0]
    lappend monitored $monitor
    set peak 0
    set queue {}
    set bin 0
    set time_to_90 null
    $ns at 0 "sample 0"
}

# --- the report -----------------------------------------------------------

proc mean {values} {
    set sum 0.0
    foreach value $values { set sum [expr {$sum + $value}] }
    return [expr {$sum / [llength $values]}]
}

# Nearest rank, of values in ascending order.
proc percentile {sorted share} {
    return [lindex $sorted [expr {int(ceil($share * [llength $sorted])) - 1}]]
}

# One complete round trip, a data packet and its ACK, is 6 packet-hops; a packet
# lost at the bottleneck has made one. Packets under way are left out.
proc derived_hops {} {
    global flows sender drops
    set acks 0
    for {set i 0} {$i < $flows} {incr i} { incr acks [$sender($i) set nackpack_] }
    return [expr {6 * $acks + int([$drops set pdrops_])}]
}

# The most memory that this process had.
proc peak_bytes {} {
    set file [open /proc/self/status]
    regexp {VmHWM:\s+(\d+) kB} [read $file] -> kib
    close $file
    return [expr {1024 * $kib}]
}

proc finish {} {
    global opt flows duration warmup rate buffer packet sample monitors monitored
    global sender monitor drops mark_acked mark_departed mark_drops
    global peak queue time_to_90
    set measured [expr {1.0 * $duration - $warmup}]
    set goodput {}
    set resent 0
    for {set i 0} {$i < $flows} {incr i} {
        set acked [expr {[$sender($i) set ack_] - $mark_acked($i)}]
        lappend goodput [expr {$acked * 8.0 * $packet / $measured}]
        incr resent [$sender($i) set nrexmitpack_]
    }
    lappend out "\"version\": \"ns-2 [ns-version]\""
    lappend out "\"system\": \"$opt(-system)\"" "\"rate_mbps\": $rate" "\"rtt_ms\": \"$opt(-rtt)\""
    lappend out "\"flows\": $flows" "\"duration_s\": $duration" "\"warmup_s\": $warmup"
    lappend out "\"packet_bytes\": $packet" "\"buffer_packets\": $buffer"
    lappend out "\"scheduler\": \"$opt(-scheduler)\""
    lappend out "\"goodput_bps\": \[[join $goodput {, }]\]" "\"retransmissions\": $resent"
    set all [expr {int([$drops set pdrops_])}]
    lappend out "\"drops\": $all" "\"drops_measured\": [expr {$all - int($mark_drops)}]"
    lappend out "\"hops\": [derived_hops]" "\"peak_bytes\": [peak_bytes]"
    if {$monitors} {
        set counted 0
        foreach m $monitored { incr counted [expr {int([$m set pdepartures_])}] }
        lappend out "\"hops_counted\": $counted"
    }
    if {$sample} {
        # an int of 32 bits, which wraps at 2 GiB; what is measured has to be less than 4
        set departed [expr {([$monitor set bdepartures_] - int($mark_departed)) & 0xffffffff}]
        set sorted [lsort -integer $queue]
        lappend out "\"utilisation\": [expr {$departed * 8 / ($measured * $rate * 1e6)}]"
        lappend out "\"queue_mean_packets\": [mean $queue]"
        lappend out "\"queue_p95_packets\": [percentile $sorted 0.95]"
        lappend out "\"queue_max_packets\": [lindex $sorted end]"
        lappend out "\"queue_peak_packets\": $peak" "\"time_to_90_s\": $time_to_90"
    }
    puts "{[join $out {, }]}"
    exit 0
}

$ns at $warmup end_of_warmup
$ns at $duration finish
$ns run
