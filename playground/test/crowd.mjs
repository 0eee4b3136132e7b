/** Fifty flows over a line of 100 Mbit/s: what the playground is to show without delay. */
const SCENARIO = `
name = "speed"
duration = "20s"
[topology]
kind = "dumbbell"
pairs = 50
access = { rate = "1Gbit/s", delay = "1ms", queue = "unlimited" }
bottleneck = { rate = "100Mbit/s", delay = "38ms", queue = { kind = "droptail", limit = "1.0bdp" } }
[[flows]]
name = "flow"
count = 50
protocol = "PROTOCOL"
packet = "1000B"
start = { spread = "1s" }
`;

export const PROTOCOLS = ["xcp", "cubic"];
export const crowd = (protocol) => SCENARIO.replace("PROTOCOL", protocol);
