//! Measures the CPU time of one decision about a request, with 10,000 operators' rules and without
//! rules. Run with `--release`.
#![expect(clippy::print_stdout, reason = "an example speaks to its user")]

use foxy_base::{WallTime, clock};
use foxy_rules::operator::{
    Access, Conditions, Effects, OperatorRule, OperatorRules, RequestFacts,
};

const RULES: usize = 10_000;
const DECISIONS: u32 = 200_000;

fn main() {
    let deny = || Effects { access: Some(Access::Deny { message: None }), ..Effects::default() };
    let rules = |when: &dyn Fn(usize) -> Conditions| {
        let rule = |number: usize| OperatorRule {
            name: number.to_string(),
            when: when(number),
            unless: Vec::new(),
            then: deny(),
        };
        OperatorRules::new((0..RULES).map(rule).collect()).expect("sound rules")
    };
    let parsed = "the example's texts are sound";
    let by_host = rules(&|number| Conditions {
        hosts: vec![format!("host{number}.test").parse().expect(parsed)],
        ..Conditions::default()
    });
    let by_path = rules(&|number| Conditions {
        paths: vec![format!("/folder{number}/*").parse().expect(parsed)],
        ..Conditions::default()
    });
    let by_client = rules(&|number| Conditions {
        clients: vec![format!("10.{}.{}.0/24", number / 256, number % 256).parse().expect(parsed)],
        ..Conditions::default()
    });
    for (name, rules) in [
        ("no rules", &OperatorRules::default()),
        ("10,000 hosts", &by_host),
        ("10,000 paths", &by_path),
        ("10,000 client networks", &by_client),
    ] {
        println!("{name:<24} {:>6} ns a decision", time(rules));
    }
}

/// Returns the mean CPU time of a decision in nanoseconds. Every second request matches a rule.
fn time(rules: &OperatorRules) -> u128 {
    let fields: &[(&str, &str)] = &[("Accept", "*/*")];
    let mut denied = 0;
    let started = clock::thread_processor_time();
    for number in 0..DECISIONS {
        let rule = number as usize % (2 * RULES);
        let (host, path) = (format!("host{rule}.test"), format!("/folder{rule}/index.html"));
        let url = ("http", &*host, 80);
        let facts =
            RequestFacts::new(url, path.as_bytes(), "GET", fields, WallTime::from_seconds(0))
                .from_client([10, (rule / 256) as u8, (rule % 256) as u8, 1].into());
        denied += u32::from(rules.decide(&facts).access().is_some());
    }
    let elapsed = (clock::thread_processor_time() - started).as_nanos();
    assert!(denied == 0 || denied == DECISIONS / 2, "{denied} of {DECISIONS} were denied");
    elapsed / u128::from(DECISIONS)
}
