//! Explains to the user why a load failed or is incomplete, and gives advice.

use foxy_lab::load::options::LoadOptions;
use foxy_lab::{ErrorCause, LoadReport, Protocol};
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The timeout of the test connection that checks whether the proxy still listens.
const PATIENCE: Duration = Duration::from_secs(1);
const STOPPED: &str = "stopped by a signal; the results so far are incomplete";

pub fn trouble(options: &LoadOptions, report: &LoadReport) -> Option<String> {
    let (cause, failed, asked) = (report.main_cause()?.name(), report.failed(), report.asked());
    let advice = report.main_cause().and_then(of_this_machine).map(|what| format!(": {what}"));
    let advice = advice.unwrap_or_default();
    Some(format!(
        "{}: {failed} of {asked} requests failed, most of them by {cause}{advice}",
        options.target
    ))
}

const fn of_this_machine(cause: ErrorCause) -> Option<&'static str> {
    match cause {
        ErrorCause::NoPort => Some(
            "this machine has no free port for a connection; wait, reuse connections, or widen \
             net.ipv4.ip_local_port_range",
        ),
        ErrorCause::NoDescriptor => {
            Some("this process has reached its limit of open files; raise ulimit -n")
        }
        _ => None,
    }
}

pub fn failure(options: &LoadOptions, report: &LoadReport) -> Option<String> {
    if options.interrupted.load(Relaxed) {
        return Some(STOPPED.into());
    }
    if report.answers == 0 {
        return Some(nothing_answered(options, report.main_cause_of_sent()));
    }
    let trouble = trouble(options, report)?;
    let look = TcpStream::connect_timeout(&options.target, PATIENCE);
    let gone = look.is_err_and(|error| ErrorCause::of_connect(&error) == ErrorCause::Connect);
    let why =
        if gone { "no program listens there any more".into() } else { shortfall(options, report)? };
    Some(format!("{trouble}; {why}, so the results are incomplete"))
}

fn shortfall(options: &LoadOptions, report: &LoadReport) -> Option<String> {
    let of = |cause: ErrorCause| report.errors[cause as usize];
    let wrong = report.wrong_answers();
    if of(ErrorCause::NoPort) + of(ErrorCause::NoDescriptor) > 0 {
        Some("this machine, not the proxy, was too slow for the load".into())
    } else if let Some(since) = report.silent_since(options.stop) {
        Some(format!(
            "the proxy gave no correct answer after the first {:.1} s",
            since.as_secs_f64()
        ))
    } else if wrong > report.answers {
        let all = wrong + report.answers;
        Some(format!("{wrong} of {all} answers were not the origin's object"))
    } else if report.not_sent() > 0 {
        let (left, asked) = (report.not_sent(), report.asked());
        Some(format!(
            "{left} of {asked} requests were not sent, because the time ended or too many others \
             were waiting"
        ))
    } else {
        None
    }
}

pub fn nothing_answered(options: &LoadOptions, cause: Option<ErrorCause>) -> String {
    let advice = match cause {
        Some(ErrorCause::Tunnel) => {
            "the proxy refuses CONNECT; allow the origin's address and port there (foxy: \
             --allow-destination, --connect-port)"
        }
        Some(ErrorCause::Certificate) => {
            "the certificate is not trusted, or is for another name; give its authority with --ca"
        }
        Some(ErrorCause::Handshake) => {
            "the TLS handshake failed; does the server speak TLS, and the HTTP version of \
             --protocol?"
        }
        Some(
            ErrorCause::Protocol | ErrorCause::Closed | ErrorCause::Reset | ErrorCause::Incomplete,
        ) if options.protocol == Protocol::Http2 => "does the server speak HTTP/2?",
        Some(
            ErrorCause::Status
            | ErrorCause::Incomplete
            | ErrorCause::Surplus
            | ErrorCause::Length
            | ErrorCause::BodyMismatch
            | ErrorCause::Foreign
            | ErrorCause::Protocol,
        ) => {
            "the answers are not the origin's objects; is the address a proxy that may reach the \
             origin?"
        }
        _ => cause.and_then(of_this_machine).unwrap_or("is the proxy running there?"),
    };
    let cause = cause.map(|cause| format!(" ({})", cause.name())).unwrap_or_default();
    format!("{}: no request got a correct answer{cause}; {advice}", options.target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_lab::load::options::{Mode, Stop};
    use foxy_workload::Workload;
    use std::net::TcpListener;

    /// Returns the explanation for a load of ten seconds with `answers` correct answers. `seen`
    /// first changes the report of the load. The proxy's port is open.
    fn said(answers: u64, seen: impl FnOnce(&mut LoadReport)) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mode = Mode::Reverse { host: "origin.test".into() };
        let workload = Workload::find("zipf").expect("one of ours");
        let options = LoadOptions::new(listener.local_addr().expect("bound"), mode, workload);
        let options = LoadOptions { stop: Stop::After(Duration::from_secs(10)), ..options };
        let mut report = LoadReport { answers, ..LoadReport::default() };
        seen(&mut report);
        let said = failure(&options, &report)?;
        Some(said.split_once(' ').expect("words").1.to_owned())
    }

    fn failing(answers: u64, cause: ErrorCause, count: u64) -> Option<String> {
        said(answers, |report| (0..count).for_each(|_| report.fail(cause)))
    }

    #[test]
    fn what_to_do_depends_on_what_nothing_was_answered_for() {
        let said = |protocol, cause| {
            let workload = Workload::find("zipf").expect("one of ours");
            let mode = Mode::Reverse { host: "origin.test".into() };
            let options =
                LoadOptions::new("127.0.0.1:1".parse().expect("an address"), mode, workload);
            nothing_answered(&LoadOptions { protocol, ..options }, Some(cause))
        };
        let http1 = Protocol::Http11 { persistent: true };
        assert!(
            said(Protocol::Http2, ErrorCause::Protocol)
                .ends_with("(protocol); does the server speak HTTP/2?")
        );
        assert!(
            said(Protocol::Http2, ErrorCause::Closed)
                .ends_with("(closed); does the server speak HTTP/2?")
        );
        for cause in [ErrorCause::Surplus, ErrorCause::Incomplete, ErrorCause::Protocol] {
            let text = said(http1, cause);
            assert!(text.contains("the answers are not the origin's objects"), "{text}");
        }
        assert!(
            said(Protocol::Http2, ErrorCause::Connect).ends_with("is the proxy running there?")
        );
    }

    #[test]
    fn a_run_for_which_this_machine_had_too_little_is_incomplete() {
        let text = failing(41, ErrorCause::NoPort, 2).expect("incomplete");
        assert!(text.starts_with(
            "2 of 43 requests failed, most of them by no_port: this machine has no free port"
        ));
        assert!(
            text.ends_with(
                "; this machine, not the proxy, was too slow for the load, so the results \
                 are incomplete"
            ),
            "{text}"
        );
        assert!(
            failing(41, ErrorCause::NoDescriptor, 1)
                .is_some_and(|text| text.contains("raise ulimit -n"))
        );
        assert_eq!(failing(41, ErrorCause::Reset, 40), None, "those are the proxy's");
    }

    #[test]
    fn a_run_in_whose_last_half_nothing_was_answered_is_incomplete() {
        let seconds = Duration::from_secs;
        let run = |ended| {
            said(248, |report| {
                report.answering.take(seconds(0), Duration::from_millis(400), true);
                report.answering.take(seconds(1), seconds(ended), false);
                report.fail(ErrorCause::Timeout);
            })
        };
        let expected = "1 of 249 requests failed, most of them by timeout; the proxy gave \
                        no correct answer after the first 0.4 s, so the results are incomplete";
        assert_eq!(run(31).as_deref(), Some(expected));
        let later = said(248, |report| {
            report.answering.take(seconds(0), seconds(9), true);
            report.answering.take(seconds(1), seconds(31), false);
            report.fail(ErrorCause::Timeout);
        });
        assert_eq!(later, None);
    }

    #[test]
    fn a_run_most_of_whose_answers_were_wrong_is_incomplete() {
        let text = failing(10, ErrorCause::BodyMismatch, 11).expect("incomplete");
        assert!(text.contains("; 11 of 21 answers were not the origin's object, so the"), "{text}");
        assert!(failing(10, ErrorCause::Foreign, 11).is_some());
        assert_eq!(failing(10, ErrorCause::Foreign, 10), None);
    }

    #[test]
    fn a_run_that_did_not_send_all_its_requests_is_incomplete() {
        let text = failing(10, ErrorCause::NotSent, 3).expect("incomplete");
        assert!(
            text.contains("; 3 of 13 requests were not sent, because the time ended"),
            "{text}"
        );
    }
}
