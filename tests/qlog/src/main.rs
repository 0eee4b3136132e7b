//! Reads a qlog of version 0.3 from standard input by the types of the crate `qlog`; prints its number of events.

use std::io;

use qlog::Qlog;
use qlog::events::EventData;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log: Qlog = serde_json::from_reader(io::stdin())?;
    let mut metrics = 0;
    for trace in &log.traces {
        for event in &trace.events {
            if matches!(event.data, EventData::MetricsUpdated(_)) {
                metrics += 1;
            }
        }
    }
    println!("{} {} {metrics}", log.qlog_version, log.traces.len());
    Ok(())
}
