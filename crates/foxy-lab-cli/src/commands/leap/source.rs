//! The source of the requests of `foxy leap`: the objects of a workload, or the lines of a trace.

use super::arguments::{self, REQUESTS};
use super::secure;
use crate::experiment;
use crate::{logs, workloads};
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::terminal::{self, Level};
use foxy_lab::leap::{Asked, requests};
use foxy_workload::trace::synthetic::{MODELS, generate};
use foxy_workload::trace::{ReadReport, Statistics};
use foxy_workload::{Object, Trace};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub fn probe(authority: &Arc<str>) -> Asked {
    let path = Object { id: u64::MAX, size: 1000, version: 1 }.to_string();
    Asked::get(Arc::clone(authority), path, Duration::ZERO)
}

fn trace(matches: &ArgMatches) -> Result<Option<(Trace, ReadReport)>, Failure> {
    let read =
        if matches.get_flag("live") { logs::read_trace } else { logs::read_trace_of_all_methods };
    read(matches, "leap")
}

pub struct ReplaySource {
    pub name: String,
    trace: Option<Trace>,
    pub text: Option<String>,
}

impl ReplaySource {
    pub fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        if let Some((trace, read)) = trace(matches)? {
            let text = Some(logs::reading(&read, &trace));
            return Ok(Self { name: "trace".into(), trace: Some(trace), text });
        }
        let Some(like) = matches.get_one::<String>("like") else {
            let name = matches.get_one::<String>("workload").cloned().unwrap_or_default();
            return Ok(Self { name, trace: None, text: None });
        };
        let model =
            MODELS.iter().find(|model| model.name == like).expect("one of the possible values");
        let gets =
            usize::try_from(arguments::most(matches).unwrap_or(model.gets)).unwrap_or(usize::MAX);
        let trace = generate(model, gets, experiment::seed(matches));
        let Statistics { gets, urls, bytes, .. } = Statistics::of(&trace);
        let text = format!("synthetic, like {like}: {gets} gets of {urls} URLs, {bytes} bytes");
        Ok(Self { name: format!("synthetic {like}"), trace: Some(trace), text: Some(text) })
    }
}

pub struct Stream<'a> {
    pub probe: Asked,
    pub requests: Box<dyn Iterator<Item = Asked> + 'a>,
    pub count: Option<u64>,
}

pub fn stream<'a>(
    matches: &ArgMatches,
    source: &'a ReplaySource,
    origin: Option<SocketAddr>,
) -> Result<Stream<'a>, Failure> {
    let limit = arguments::most(matches);
    let authority: Arc<str> = origin.map(|origin| origin.to_string()).unwrap_or_default().into();
    let scheme = secure::scheme(matches);
    let probe = probe(&authority).over(scheme);
    let Some(trace) = &source.trace else {
        let (workload, count) = (workloads::named(matches)?, limit.unwrap_or(REQUESTS));
        let requests =
            requests::of_workload(&workload, experiment::seed(matches), count, authority);
        let requests = requests.ok_or_else(|| {
            let name = &workload.name;
            Failure::Unusable(format!(
                "--workload {name}: needs more than GETs to one server, and leap cannot send the \
                 rest; name a workload of the model objects/1"
            ))
        })?;
        let requests = Box::new(requests.map(move |asked| asked.over(scheme)));
        return Ok(Stream { probe, requests, count: Some(count) });
    };
    let most = usize::try_from(limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let count = Some((trace.gets.len() + trace.others.len()).min(most) as u64);
    if origin.is_some() {
        let requests = requests::of_trace(trace, authority).map(move |asked| asked.over(scheme));
        let requests = Box::new(requests.take(most));
        return Ok(Stream { probe, requests, count });
    }
    let probe = requests::live(trace).next().ok_or_else(|| {
        Failure::Unusable(
            "--live: the trace names no http:// or https:// URL; give one that does".into(),
        )
    })?;
    let usable = requests::live(trace).count();
    if usable < trace.gets.len() {
        let left_out = trace.gets.len() - usable;
        let what = format!(
            "leap: --live: {left_out} GETs of the trace are left out, because their URLs are not \
             http or https"
        );
        terminal::report(Level::Warning, &what);
    }
    let count = Some(usable.min(most) as u64);
    Ok(Stream { probe, requests: Box::new(requests::live(trace).take(most)), count })
}
