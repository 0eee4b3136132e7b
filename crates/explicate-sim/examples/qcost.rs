fn main() {
    let a: Vec<String> = std::env::args().collect();
    let seconds: f64 = a[3].parse().unwrap();
    let queue = &a[2];
    let text = format!(
        r#"
            name = "q"
            duration = "{seconds}s"
            [topology]
            kind = "dumbbell"
            pairs = 10
            access = {{ rate = "400Mbit/s", delay = "5ms", queue = "unlimited" }}
            bottleneck = {{ rate = "100Mbit/s", delay = "30ms", {queue} }}
            [[flows]]
            name = "bulk"
            count = 10
            protocol = "{}"
            packet = "1000B"
            start = {{ spread = "1s" }}
            "#,
        a[1]
    );
    let s = explicate_scenario::model::Scenario::parse(&text, "q", std::path::Path::new("."), &[])
        .map_err(|e| e.to_string())
        .unwrap();
    let mut e = explicate_sim::build::build(&s, 1, true).unwrap();
    e.run_until(explicate_core::units::Time::from_secs_f64(seconds));
    e.settle_all();
    e.audit().unwrap();
    println!("{}", e.hops());
}
