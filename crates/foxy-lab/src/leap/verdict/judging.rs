//! What is known while requests are judged: the counts, what references were before, and which
//! fields are noise.

use super::detail::Detail;
use super::excuse::excuse;
use super::fields::VALIDATORS;
use super::past::Past;
use super::reference::{Right, reference};
use super::{Reference, Verdict, Version, judge};
use crate::leap::exchange;
use crate::leap::multiplier::group::{self, RequestGroup};
use crate::leap::multiplier::means::Means;
use crate::leap::report::LeapReport;
use crate::leap::report::line::{Line, Result as Said};
use crate::leap::{Asked, LeapRun};
use std::io;
use std::rc::Rc;

pub struct Judging {
    pub means: Rc<Means>,
    pub report: LeapReport,
    past: Past,
    /// For the log; asking anew is a system call.
    process: u64,
}

impl Judging {
    /// Must run inside the runtime of the run.
    pub fn new(run: &LeapRun) -> io::Result<Self> {
        let means = Rc::new(Means::new(run)?);
        let driver = Rc::clone(&means);
        // It ends with the runtime, unless the kernel takes a timer back that it gave, which it
        // does not.
        tokio::task::spawn_local(async move { driver.alarm.run().await });
        let process = u64::from(std::process::id());
        Ok(Self { report: LeapReport::new(run), past: Past::default(), process, means })
    }

    pub fn finish(self) -> LeapReport {
        let mut report = self.report;
        report.noise = self.means.noise.borrow().by_path();
        for (path, surplus) in report.paths.iter_mut().zip(self.means.kept.surplus()) {
            path.late_surplus = surplus;
        }
        report
    }

    /// Learns noise: asks every path twice, all at once.
    pub async fn learn(&mut self, probe: &Asked) {
        if let Some(wanted) = &self.means.run.wanted {
            wanted.note(&probe.authority, &probe.path);
        }
        let start = |path: usize| {
            let (means, probe) = (Rc::clone(&self.means), probe.clone());
            let [first, second] = means.numbers.probes(path);
            tokio::task::spawn_local(async move {
                let first = exchange::ask(&means, path, &probe, first, None).await;
                let first = first.outcome.ok()?;
                let second = exchange::ask(&means, path, &probe, second, None).await;
                Some((first, second.outcome.ok()?))
            })
        };
        let tasks: Vec<_> = (0..self.means.run.paths.len()).map(start).collect();
        for (path, task) in tasks.into_iter().enumerate() {
            if let Ok(Some((first, second))) = task.await {
                let manner = self.means.run.paths[path].manner;
                self.means.noise.borrow_mut().learn(path, manner, &first, &second);
            }
        }
    }

    pub fn take(&mut self, group: &RequestGroup, log: &mut dyn FnMut(&Line)) {
        let paths = &self.means.run.paths;
        if let (Some(direct), Some(again)) = (group::direct(paths), &group.again)
            && let (Ok(first), Ok(second)) = (&group.copies[direct].outcome, &again.outcome)
        {
            self.means.noise.borrow_mut().learn_of(&group.asked, first, second);
        }
        let noise = self.means.noise.borrow();
        let (key, message) = (group.asked.key(), &group.asked.message);
        let chosen = reference(&self.means.run, group, &noise);
        let right = chosen.map(|right| {
            let Right { answer, whose, fields, .. } = right;
            (
                right,
                Reference {
                    asked: message,
                    answer,
                    whose,
                    fields,
                    earlier: self.past.earlier(&key),
                },
            )
        });
        let timed = self.report.begin(group);
        for (path, copy) in group.copies.iter().enumerate() {
            let ignored = |name: &str| {
                right
                    .as_ref()
                    .is_ok_and(|(right, _)| noise.covers((path, right.path), &group.asked, name))
            };
            let reference =
                right.as_ref().map(|(_, reference)| reference).map_err(|&reason| reason);
            let mut finding = judge(&copy.outcome, reference, &ignored);
            if let (Ok(finding), Ok(answer)) = (&mut finding, &copy.outcome)
                && finding.verdict == Verdict::BodyMismatch
                && let Some(owner) = self.past.owner(answer.digest, &key)
            {
                finding.detail = Detail::BodyOf(owner.to_owned());
            }
            if let (Ok(finding), Some(error)) = (&mut finding, copy.broken) {
                finding.detail = Detail::NotHttp(error);
            }
            let (run, by) =
                (&self.means.run, right.as_ref().ok().map(|(right, reference)| (right, reference)));
            let finding = finding.and_then(|found| {
                excuse((run, group, path), &found, by, &ignored).map_or(Ok(found), Err)
            });
            self.report.take(
                path,
                &group.asked,
                (copy, timed),
                finding.as_ref().map_err(|&reason| reason),
            );
            let own = copy.outcome.as_ref().map_or(0, |answer| answer.status);
            let expected = right.as_ref().map_or(0, |(right, _)| right.answer.status);
            let is_reference = right.as_ref().is_ok_and(|(right, _)| right.path == path);
            let result = match &finding {
                Ok(finding) if !is_reference => Said::Judged(expected, own, finding.verdict),
                _ => Said::Reference,
            };
            log(&self.line(group, path, result));
        }
        if let Ok((right, _)) = right {
            let changes = |name: &&str| noise.covers((right.path, right.path), &group.asked, name);
            let version = right.answer.version();
            let validators = version.validators.filter(|_| !VALIDATORS.iter().any(changes));
            self.past.remember(&key, Version { validators, ..version });
        }
    }

    fn line(&self, group: &RequestGroup, path: usize, result: Said) -> Line {
        let (copy, message) = (&group.copies[path], &group.asked.message);
        Line {
            at: group.at,
            process: self.process,
            number: group.number,
            path: self.means.run.paths[path].name.clone(),
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
