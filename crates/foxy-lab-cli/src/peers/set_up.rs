//! The setup of a proxy as a record, complete enough to repeat it.

use super::{Peer, Plan};
use foxy_report::Subject;
use std::path::Path;

pub fn record(
    (peer, program): (&Peer, &Path),
    (name, workload): (&str, &str),
    plan: &Plan,
    folders: &[&Path],
) -> Subject {
    let neutral = |text: &str| {
        folders.iter().fold(text.to_owned(), |text, folder| {
            text.replace(&*folder.to_string_lossy(), "FOLDER")
        })
    };
    let program_name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let command =
        [program_name].into_iter().chain(plan.serve.iter().map(|argument| neutral(argument)));
    let helper = plan.helper.iter().map(|helper| {
        let words = helper.arguments.iter().map(|argument| neutral(argument)).collect::<Vec<_>>();
        format!("beside it: {} {}", helper.program, words.join(" "))
    });
    Subject {
        subject: name.into(),
        version: peer.version(program),
        workload: workload.into(),
        command: command.collect::<Vec<_>>().join(" "),
        files: plan.files.iter().map(|(name, text)| ((*name).to_owned(), neutral(text))).collect(),
        notes: plan.notes.iter().map(ToString::to_string).chain(helper).collect(),
    }
}
