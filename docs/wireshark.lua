-- Wireshark dissector of explicit flows: UDP port 49407. Use: tshark -X lua_script:docs/wireshark.lua -r file.pcapng
local explicate = Proto("explicate", "Explicit congestion control")
local f = explicate.fields
local formats = { [1] = "standard", [2] = "minimal", [3] = "window" }

f.next = ProtoField.uint8("explicate.next", "Next header")
f.length = ProtoField.uint8("explicate.length", "Length of the congestion header")
f.version = ProtoField.uint8("explicate.version", "Version", base.DEC, nil, 0xf0)
f.format = ProtoField.uint8("explicate.format", "Format", base.DEC, formats, 0x0f)
f.mark = ProtoField.uint8("explicate.mark", "Mark (0 unanswered, else 1 + wait: 64 of 0.5 ms, then 4 ms)")
f.plain_mark = ProtoField.uint8("explicate.mark", "Mark (0 unanswered, else 1 + wait: 16 ms)", base.DEC, nil, 0xf0)
f.x = ProtoField.uint32("explicate.x", "X (2^-28 s)")
f.rtt = ProtoField.uint32("explicate.rtt", "RTT (2^-28 s)")
f.reverse = ProtoField.int32("explicate.reverse_feedback", "Reverse feedback (bytes/s)")
f.delta = ProtoField.int32("explicate.delta_throughput", "Delta throughput (bytes/s)")
f.own = ProtoField.bytes("explicate.own", "The protocol's own fields")
f.ttl = ProtoField.uint8("explicate.ttl", "TTL of explicit routers")
f.last_router = ProtoField.ipv4("explicate.last_router", "Last explicit router")
f.flags = ProtoField.uint8("explicate.flags", "Flags", base.HEX)
f.syn = ProtoField.bool("explicate.flags.syn", "SYN", 8, nil, 0x01)
f.fin = ProtoField.bool("explicate.flags.fin", "FIN", 8, nil, 0x02)
f.ack = ProtoField.bool("explicate.flags.ack", "ACK", 8, nil, 0x04)
f.congestion = ProtoField.bool("explicate.flags.congestion", "Congestion", 8, nil, 0x08)
f.ece = ProtoField.bool("explicate.flags.ece", "ECE", 8, nil, 0x10)
f.cwr = ProtoField.bool("explicate.flags.cwr", "CWR", 8, nil, 0x20)
f.control = ProtoField.bool("explicate.flags.control", "Message", 8, nil, 0x40)
f.options = ProtoField.uint8("explicate.options", "Options", base.HEX)
f.payload = ProtoField.uint16("explicate.payload", "Payload bytes")
f.stamp = ProtoField.uint16("explicate.receiver_stamp", "Receiver's time stamp (16 us), or packets that arrived")
f.flow = ProtoField.uint32("explicate.flow", "Flow")
f.segment = ProtoField.uint32("explicate.segment", "Segment")
f.acked = ProtoField.uint32("explicate.acknowledgement", "Next segment expected")
f.number = ProtoField.uint32("explicate.packet_number", "Packet number")
f.window = ProtoField.uint32("explicate.window", "Receiver window (segments)")
f.timestamp = ProtoField.uint32("explicate.timestamp", "Time stamp (4 ns)")
f.sack = ProtoField.string("explicate.sack", "SACK range")
f.message = ProtoField.bytes("explicate.message", "Message")

function explicate.dissector(buffer, info, root)
    local at, length = 0, buffer:len()
    if length < 24 then return 0 end
    local tree = root:add(explicate, buffer())
    if buffer(0, 1):uint() == 253 then
        local long = buffer(1, 1):uint()
        if (long ~= 20 and long ~= 28) or length < long + 24 then return 0 end
        local head = tree:add(buffer(0, long), "Congestion header")
        head:add(f.next, buffer(0, 1))
        head:add(f.length, buffer(1, 1))
        head:add(f.version, buffer(2, 1))
        head:add(f.format, buffer(2, 1))
        head:add(f.mark, buffer(3, 1))
        if buffer(2, 1):bitfield(4, 4) > 3 then
            head:add(f.own, buffer(4, 16))
        else
            head:add(f.x, buffer(4, 4))
            head:add(f.rtt, buffer(8, 4))
            head:add(f.reverse, buffer(12, 4))
            head:add(f.delta, buffer(16, 4))
        end
        if long == 28 then
            head:add(f.ttl, buffer(20, 1))
            head:add(f.last_router, buffer(24, 4))
        end
        at = long
    end
    local flags, options = buffer(at, 1):uint(), buffer(at + 1, 1):uint()
    local ack, control, syn = bit.band(flags, 4) ~= 0, bit.band(flags, 64) ~= 0, bit.band(flags, 1) ~= 0
    local head = tree:add(buffer(at, 24), "Transport header")
    head:add(f.flags, buffer(at, 1))
    for _, flag in ipairs({ f.syn, f.fin, f.ack, f.congestion, f.ece, f.cwr, f.control }) do
        head:add(flag, buffer(at, 1))
    end
    info.cols.protocol = "EXPLICATE"
    if control then
        head:add(f.message, buffer(at + 12))
        info.cols.info = string.format("message, kind 0x%02x", buffer(at + 12, 1):uint())
        return length
    end
    head:add(f.options, buffer(at + 1, 1))
    if at == 0 and not syn then head:add(f.plain_mark, buffer(at + 1, 1)) end
    head:add(ack and f.stamp or f.payload, buffer(at + 2, 2))
    head:add(f.flow, buffer(at + 4, 4))
    head:add(ack and f.acked or f.segment, buffer(at + 8, 4))
    head:add(f.number, buffer(at + 12, 4))
    if ack then head:add(f.window, buffer(at + 16, 4)) end
    head:add(f.timestamp, buffer(at + 20, 4))
    local next = at + 24
    for range = 1, bit.band(options, 3) do
        if next + 8 > length then return length end
        local first, last = buffer(next, 4):uint(), buffer(next + 4, 4):uint()
        -- The first range may report a duplicate (RFC 2883): then it lies below the next segment expected, or in the second range.
        local again = range == 1 and first < buffer(at + 8, 4):uint()
        head:add(f.sack, buffer(next, 8), string.format("[%d, %d)%s", first, last, again and " duplicate" or ""))
        next = next + 8
    end
    local what = syn and (ack and "SYN ACK" or "SYN") or (ack and "ACK" or "data")
    info.cols.info = string.format("%s flow %d %s %d", what, buffer(at + 4, 4):uint(), ack and "expects" or "segment",
        buffer(at + 8, 4):uint())
    return length
end

DissectorTable.get("udp.port"):add(49407, explicate)
