//! Compares each proxy's answer to a request with the reference, the answer that counts as correct.
//! Also counts the verdicts, keeps earlier references, and notes the fields that differ by chance.
//! An answer receives no verdict if the origin may have caused its difference from the reference.

use super::fields::VALIDATORS;
use super::noise::Noise;
use super::reference::{Past, Reference, reference};
use super::{Detail, Finding, Unjudged, Verdict, Version, judge};
use crate::leap::context::RunContext;
use crate::leap::exchange;
use crate::leap::multiplier::group::{RequestGroup, direct};
use crate::leap::report::LeapReport;
use crate::leap::report::line::{Line, Result as Said};
use crate::leap::{Asked, LeapRun, PathFailure};
use std::io;
use std::rc::Rc;

pub struct Judging {
    pub context: Rc<RunContext>,
    pub report: LeapReport,
    past: Past,
    /// The process number for the log, read once because each reading needs a system call.
    process: u64,
}

impl Judging {
    /// Starts the judging of a run. The caller must be inside the tokio runtime of the run.
    pub fn new(run: &LeapRun) -> io::Result<Self> {
        let context = Rc::new(RunContext::new(run)?);
        let driver = Rc::clone(&context);
        // The task of the timer runs until the runtime ends.
        tokio::task::spawn_local(async move { driver.alarm.run().await });
        let process = u64::from(std::process::id());
        Ok(Self { report: LeapReport::new(run), past: Past::default(), process, context })
    }

    pub fn finish(self) -> LeapReport {
        let mut report = self.report;
        report.noise = self.context.noise.borrow().by_path();
        for (path, surplus) in report.paths.iter_mut().zip(self.context.kept.surplus()) {
            path.late_surplus = surplus;
        }
        report
    }

    /// Learns for each path (proxy or origin) which fields its server changes in every answer
    /// (noise). Sends the probe request twice on each path; the paths run at the same time.
    pub async fn learn(&mut self, probe: &Asked) {
        if let Some(wanted) = &self.context.run.wanted {
            wanted.note(&probe.authority, &probe.path);
        }
        let start = |path: usize| {
            let (context, probe) = (Rc::clone(&self.context), probe.clone());
            let [first, second] = context.numbers.probes(path);
            tokio::task::spawn_local(async move {
                let first = exchange::ask(&context, path, &probe, first, None).await;
                let first = first.outcome.ok()?;
                let second = exchange::ask(&context, path, &probe, second, None).await;
                Some((first, second.outcome.ok()?))
            })
        };
        let tasks: Vec<_> = (0..self.context.run.paths.len()).map(start).collect();
        for (path, task) in tasks.into_iter().enumerate() {
            if let Ok(Some((first, second))) = task.await {
                let manner = self.context.run.paths[path].manner;
                self.context.noise.borrow_mut().learn(path, manner, &first, &second);
            }
        }
    }

    /// Gives verdicts on the answers to one request, counts and logs them. The caller passes the
    /// answers of all proxies and the origin.
    pub fn take(&mut self, group: &RequestGroup, log: &mut dyn FnMut(&Line)) {
        let run = &self.context.run;
        if let (Some(direct), Some(again)) = (direct(&run.paths), &group.again)
            && let (Ok(first), Ok(second)) = (&group.copies[direct].outcome, &again.outcome)
        {
            self.context.noise.borrow_mut().learn_of(&group.asked, first, second);
        }
        let noise = self.context.noise.borrow();
        let key = group.asked.key();
        let reference = reference(run, group, &noise, self.past.earlier(&key));
        let case = Case { run, group, noise: &noise, reference };
        let are_timed = self.report.begin(group);
        for path in 0..group.copies.len() {
            let finding = case.finding(path, &self.past, &key);
            self.report.take(path, group, are_timed, &finding);
            log(&case.line(path, &finding, self.process));
        }
        if let Some(version) = case.version() {
            self.past.remember(&key, version);
        }
    }
}

/// A request with the answers of all proxies and the origin and with the reference, the answer that
/// counts as correct.
struct Case<'a> {
    run: &'a LeapRun,
    group: &'a RequestGroup,
    noise: &'a Noise,
    reference: Result<Reference<'a>, Unjudged>,
}

impl Case<'_> {
    fn is_noise(&self, path: usize, name: &str) -> bool {
        let covers =
            |right: &Reference<'_>| self.noise.covers(path, right.path, &self.group.asked, name);
        self.reference.as_ref().is_ok_and(covers)
    }

    fn finding(&self, path: usize, past: &Past, key: &str) -> Result<Finding, Unjudged> {
        let copy = &self.group.copies[path];
        let reference = self.reference.as_ref().map_err(|&reason| reason);
        let mut finding = judge(&copy.outcome, reference, &|name| self.is_noise(path, name))?;
        if let Ok(answer) = &copy.outcome
            && finding.verdict == Verdict::BodyMismatch
            && let Some(owner) = past.owner(answer.digest, key)
        {
            finding.detail = Detail::BodyOf(owner.to_owned());
        }
        if let Some(error) = copy.broken {
            finding.detail = Detail::NotHttp(error);
        }
        self.excuse(path, &finding).map_or(Ok(finding), Err)
    }

    /// Returns the reason why the proxy is not to blame for its difference from the reference.
    /// Returns `None` if the proxy is to blame.
    fn excuse(&self, path: usize, finding: &Finding) -> Option<Unjudged> {
        let outcome = &self.group.copies[path].outcome;
        let answer = match outcome {
            Ok(answer) => answer,
            Err(failure) => {
                return self.has_origin_failed(path, *failure).then_some(Unjudged::OriginFailed);
            }
        };
        let right = self.reference.as_ref().ok().filter(|_| finding.verdict != Verdict::Ok)?;
        if !right.steady && !self.group.asked.message.method.is_safe() {
            return Some(Unjudged::NotRepeated);
        }
        if let Some(Ok(again)) = self.group.again.as_ref().map(|again| &again.outcome) {
            let second = Reference { answer: again, ..*right };
            let found = judge(outcome, Ok(&second), &|name| self.is_noise(path, name));
            if found.is_ok_and(|found| found.verdict == Verdict::Ok) {
                return Some(Unjudged::OriginVaries);
            }
        }
        let is_unknown = matches!(finding.detail, Detail::Body(..) | Detail::Status(..));
        let may_be_given = answer.length > 0 && answer.status < 500;
        (is_unknown && !right.steady && may_be_given && self.is_seen_elsewhere(path))
            .then_some(Unjudged::SeenElsewhere)
    }

    fn has_origin_failed(&self, path: usize, failure: PathFailure) -> bool {
        let direct = direct(&self.run.paths).filter(|&direct| direct != path);
        let origin = direct.and_then(|direct| self.group.copies[direct].outcome.as_ref().err());
        origin.is_some_and(|&origin| failure.may_follow(origin))
    }

    /// Whether another proxy, at another address, gave the same answer. If so, both proxies
    /// probably have the answer from the origin. Proxies with equal configurations do not count,
    /// because they make the same mistakes.
    fn is_seen_elsewhere(&self, path: usize) -> bool {
        let (run, copies) = (self.run, &self.group.copies);
        let print = |path: usize| copies[path].outcome.as_ref().ok().map(|a| a.fingerprint());
        (0..copies.len()).any(|other| {
            run.paths[other].address != run.paths[path].address
                && !run.alike.contains(&(path, other))
                && !run.alike.contains(&(other, path))
                && print(other) == print(path)
        })
    }

    /// Returns the version of the reference. Leaves out the validators (`ETag`, `Last-Modified`) if
    /// the server changes them in every answer.
    fn version(&self) -> Option<Version> {
        let right = self.reference.as_ref().ok()?;
        let are_noise = VALIDATORS.iter().any(|name| self.is_noise(right.path, name));
        let version = right.answer.version();
        Some(Version { validators: version.validators.filter(|_| !are_noise), ..version })
    }

    fn line(&self, path: usize, finding: &Result<Finding, Unjudged>, process: u64) -> Line {
        let group = self.group;
        let (copy, message) = (&group.copies[path], &group.asked.message);
        let result = match (&self.reference, finding) {
            (Ok(right), Ok(_)) if right.path == path => Said::Reference,
            (right, Ok(finding)) => {
                let expected = right.as_ref().map_or(0, |right| right.answer.status);
                let own = copy.outcome.as_ref().map_or(0, |answer| answer.status);
                Said::Judged(expected, own, finding.verdict)
            }
            (_, Err(_)) => Said::Reference,
        };
        Line {
            at: group.at,
            process,
            number: group.number,
            path: self.run.paths[path].name.clone(),
            first_byte: copy.times.first_byte,
            transfer: copy.times.transfer,
            size: copy.bytes,
            result,
            client: message.client.map_or_else(|| "127.0.0.1".into(), |client| client.to_string()),
            validation: message.is_conditional(),
            version: message.version,
            method: message.method.to_string(),
            url: group.asked.url(),
        }
    }
}
