//! Compares the explanations of decisions on reuse with the decisions themselves.

use super::*;
use crate::cache_control::ResponseControl;
use crate::freshness::StoredTimes;
use crate::reuse::RevalidateReason;

const RECEIVED: WallTime = WallTime::from_seconds(1_000_000);

fn explained(request: &str, response: &[(&str, &str)], age: u64) -> Vec<Step> {
    let control = ResponseControl::of(response);
    let (target, times) =
        (&b"http://a.test/"[..], StoredTimes { received: RECEIVED, initial_age: 2 });
    let policy = Policy::default();
    let lifetime = lifetime(200, response, &control, &policy, RECEIVED, target).seconds();
    let stored = Stored { control: &control, lifetime, times };
    let response = Response { status: 200, fields: response, target, policy };
    let request = RequestControl::of(&[("Cache-Control", request)][..]);
    explain_reuse(&request, response, stored, WallTime::from_seconds(1_000_000 + age - 2))
}

fn names(request: &str, response: &str, age: u64) -> String {
    let steps = explained(request, &[("Cache-Control", response)], age);
    steps.iter().map(|step| step.name()).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_rule_that_is_asked_speaks_in_order() {
    let cases = [
        ("", "max-age=60", 10, "lifetime age fresh reuse"),
        ("min-fresh=30", "max-age=60", 10, "lifetime age fresh request-min-fresh reuse"),
        ("", "max-age=60", 70, "lifetime age stale stale if-unreachable"),
        (
            "no-cache",
            "max-age=60",
            10,
            "lifetime age request-no-cache request-no-cache if-unreachable",
        ),
        (
            "",
            "no-cache, max-age=60",
            10,
            "lifetime age response-no-cache response-no-cache if-unreachable",
        ),
        (
            "max-age=5",
            "max-age=60",
            10,
            "lifetime age request-max-age request-max-age if-unreachable",
        ),
        (
            "max-stale=5",
            "max-age=60, stale-while-revalidate=60",
            70,
            "lifetime age stale max-stale stale-while-revalidate reuse",
        ),
        (
            "max-stale",
            "max-age=60, must-revalidate",
            70,
            "lifetime age stale never-stale stale if-unreachable",
        ),
    ];
    for (request, response, age, expected) in cases {
        assert_eq!(names(request, response, age), expected, "{request:?} {response:?} {age}");
    }
}

#[test]
fn the_source_of_a_lifetime_is_named() {
    let cases: [(&[(&str, &str)], LifetimeSource); 5] = [
        (&[("Cache-Control", "max-age=5, s-maxage=9")], LifetimeSource::SharedMaxAge),
        (&[("Cache-Control", "max-age=5")], LifetimeSource::MaxAge),
        (&[("Expires", "Thu, 01 Jan 1970 00:00:00 GMT")], LifetimeSource::Expires),
        (&[("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")], LifetimeSource::Heuristic),
        (&[], LifetimeSource::Nothing),
    ];
    for (response, expected) in cases {
        let first = explained("", response, 2).first().copied();
        let Some(Step::Lifetime { source, .. }) = first else { panic!("{first:?}") };
        assert_eq!(source, expected, "{response:?}");
    }
}

/// Returns the decision that follows from the steps before the last step.
fn follows(steps: &[Step]) -> Option<Reuse> {
    use RevalidateReason as Why;
    let by = steps.iter().find_map(|step| match step {
        Step::Expired { by } => Some(*by),
        _ => None,
    });
    let fresh = steps.iter().find_map(|step| match step {
        Step::Fresh { left } => Some(*left),
        _ => None,
    });
    let last = steps
        .iter()
        .rev()
        .find(|step| !matches!(step, Step::Therefore(_) | Step::IfUnreachable { .. }));
    Some(match (*last?, by, fresh) {
        (Step::ResponseNoCache, ..) => Reuse::Revalidate(Why::ResponseNoCache),
        (Step::RequestNoCache, ..) => Reuse::Revalidate(Why::RequestNoCache),
        (Step::RequestMaxAge { is_met: false, .. }, ..) => Reuse::Revalidate(Why::RequestMaxAge),
        (Step::MinFresh { is_met: false, .. }, _, Some(_)) => {
            Reuse::Revalidate(Why::RequestMinFresh)
        }
        (Step::Permit { permit, is_met: true, .. }, Some(by), _) => Reuse::Stale { by, permit },
        (_, Some(_), _) => Reuse::Revalidate(Why::Stale),
        (_, None, Some(left)) => Reuse::Fresh { left },
        _ => return None,
    })
}

#[test]
fn the_steps_lead_to_what_the_rules_decide() {
    let requests = [
        "",
        "no-cache",
        "max-age=10",
        "max-age=10, max-stale",
        "max-age=10, max-stale=4",
        "min-fresh=20",
        "min-fresh=20, max-stale",
        "max-stale",
        "max-stale=3",
    ];
    let responses = [
        "",
        "max-age=30",
        "no-cache",
        "s-maxage=30",
        "max-age=30, must-revalidate",
        "max-age=30, stale-while-revalidate=8",
        "max-age=30, proxy-revalidate, stale-while-revalidate=8",
    ];
    for request in requests {
        for response in responses {
            for age in [2, 9, 10, 11, 15, 29, 30, 31, 34, 38, 39, 100] {
                let steps = explained(request, &[("Cache-Control", response)], age);
                let decided = steps.iter().find_map(|step| match step {
                    Step::Therefore(reuse) => Some(*reuse),
                    _ => None,
                });
                assert_eq!(follows(&steps), decided, "{request:?} {response:?} {age}: {steps:?}");
            }
        }
    }
}
