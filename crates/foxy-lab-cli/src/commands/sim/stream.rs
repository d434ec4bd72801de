//! The reads, writes and deletions that storage schemes perform. A simulation of a proxy's memory
//! and disk cache makes them from a trace, or the command reads them from a file. The command can
//! also save them to a file.

use super::input::Input;
use super::{parsed_policies, policy_names};
use clap::ArgMatches;
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_lab::parallel::run_all;
use foxy_lab::simulation::storage::operation::{Levels, operations};
use foxy_lab::simulation::storage::operation::{OperationKind, Operations};
use foxy_lab::simulation::storage::operation_file;
use foxy_schemes::PolicyName;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

pub fn take(
    matches: &ArgMatches,
    input: Option<&Input>,
    scale: f64,
    seeds: &[u64],
    cores: usize,
) -> Result<(Vec<Operations>, String), Failure> {
    let Some(input) = input else {
        let path = matches.get_one::<PathBuf>("operations").expect("an input is required");
        let stream = read(path)?;
        let text = format!("{}: {}", path.display(), describe(&stream));
        return Ok((vec![stream], text));
    };
    let levels = levels(matches, scale)?;
    let seeds = if input.has_seeds() { seeds } else { &seeds[..1] };
    let save = matches.get_one::<PathBuf>("save-operations");
    if save.is_some() && seeds.len() > 1 {
        return Err(Failure::Unusable(
            "--save-operations: give one --seed; every seed has its own stream".into(),
        ));
    }
    let made = run_all(seeds, cores, &|&seed| operations(&input.trace(seed), &levels), &mut || {});
    let (stream, counts) = made.first().expect("there is a seed");
    let mut text = format!(
        "memory of {} hits {:.3} of gets, disk of {} ({}) {:.3} of the rest\n{}",
        ByteSize(levels.memory),
        counts.memory.hit_ratio(),
        ByteSize(levels.disk),
        levels.policy,
        counts.disk.hit_ratio(),
        describe(stream)
    );
    if let Some(path) = save {
        write(path, stream)?;
        text.push_str(&format!(", saved to {}", path.display()));
    }
    Ok((made.into_iter().map(|(stream, _)| stream).collect(), text))
}

fn levels(matches: &ArgMatches, scale: f64) -> Result<Levels, Failure> {
    let scaled = |name: &str| {
        let ByteSize(bytes) = *matches.get_one(name).expect("has a default");
        (bytes as f64 * scale) as u64
    };
    let policy = match parsed_policies(&policy_names(matches))?[..] {
        [] => PolicyName::Lru,
        [policy] => policy,
        _ => {
            return Err(Failure::Unusable(
                "--policy: the schemes share one disk cache; give only one policy".into(),
            ));
        }
    };
    let ByteSize(object_limit) = *matches.get_one("object-limit").expect("has a default");
    Ok(Levels { memory: scaled("memory"), disk: scaled("disk"), policy, object_limit })
}

fn describe(stream: &Operations) -> String {
    format!(
        "{} gets become {} URL-reads, {} URL-writes and {} URL-deletes",
        stream.gets,
        stream.count(OperationKind::Read),
        stream.count(OperationKind::Write),
        stream.count(OperationKind::Delete)
    )
}

fn read(path: &Path) -> Result<Operations, Failure> {
    let unusable =
        |what: String| Failure::Unusable(format!("--operations {}: {what}", path.display()));
    let file = File::open(path);
    let file = file.map_err(|error| {
        unusable(format!("cannot be opened: {error}; name a file that --save-operations wrote"))
    })?;
    operation_file::read(BufReader::new(file)).map_err(|error| unusable(error.to_string()))
}

fn write(path: &Path, stream: &Operations) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::Failed(format!(
            "--save-operations {}: cannot be written: {error}; name a file in a folder that can be written to",
            path.display()
        ))
    };
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    operation_file::write(&mut file, stream).map_err(failed)
}
