//! Measures Table 2 of the WebCoSM paper (paper 001 in docs/figures.md) on the real disk of this
//! machine. Simulates it at the same scale for comparison.

use super::run::Run;
use super::{CACHED, Context, Missing, fills, row};
use foxy_lab::simulation::figures::picture::{Picture, bars, quoted_bars};
use foxy_lab::simulation::figures::trial::{Mix, Trial, TrialResult};
use foxy_lab::simulation::figures::{Figure, Lab};
use foxy_lab::simulation::storage::sizing::FewerBuffers;
use foxy_report::figure::quotes::in_chart;
use foxy_report::figure::{Condition, FigureRow};
use foxy_report::statistics::mean;
use foxy_schemes::SchemeName;
use foxy_schemes::UfsMapping;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const NAME: &str = "001-table2-disk";
const RATE: &str = "URL-get/s";
const READS: &str = "URL-read/s";

const TECHNIQUES: [(&str, SchemeName); 8] = [
    ("SINGLE-DIRECTORY", SchemeName::SingleDirectory),
    ("SQUID", SchemeName::Ufs),
    ("MULTIPLE-DIRS", SchemeName::MultipleDirs),
    ("BUDDY", SchemeName::Buddy),
    ("STREAM", SchemeName::Stream),
    ("STREAM-PACKETIZER", SchemeName::Packetizer),
    ("LAZY-READS", SchemeName::LazyReads),
    ("LAZY-READS-LOC", SchemeName::LazyReadsLoc),
];

type Rates = Result<Vec<f64>, Missing>;

struct TechniqueOutcome {
    scheme: SchemeName,
    gets: Rates,
    reads: Rates,
    /// The files created and deleted for each client request, one value per run.
    files: Vec<f64>,
    lost: u64,
    fewer_buffers: Option<FewerBuffers>,
}

type Modelled = Result<f64, String>;

pub fn table_2(context: &Context) -> Figure {
    let lab = Lab::new(context.extent(), &|_, _| {});
    let scale = lab.extent().scale;
    let outcomes = measure(context, &lab);
    if context.watch.stop.load(Relaxed) {
        return Figure::default();
    }
    let models =
        TECHNIQUES.map(|(_, scheme)| modelled(&lab.over_seeds(Trial::of(scheme.row().text, 1))));
    let filled = fills(&[&lab.stream(lab.extent().seeds[0], Mix::PAPER).operations]);
    let mut rows = Vec::new();
    for ((name, _), (outcome, model)) in TECHNIQUES.iter().zip(outcomes.iter().zip(&models)) {
        rows.push(match &outcome.gets {
            Ok(rates) => row(NAME, name, RATE, rates, scale)
                .judged()
                .under(filled.clone())
                .with_note(beside(model, outcome.fewer_buffers)),
            Err(missing) => missing.row(NAME, name, RATE, scale),
        });
    }
    for ((name, ..), outcome) in TECHNIQUES.iter().zip(&outcomes) {
        let name = format!("{name}, read from the disk");
        rows.push(match &outcome.reads {
            Ok(rates) => row(NAME, &name, READS, rates, scale).with_note(format!(
                "pages in random order, not from memory; not found: {}",
                outcome.lost
            )),
            Err(missing) => missing.row(NAME, &name, READS, scale),
        });
    }
    rows.extend(ratios(&outcomes, &filled, scale));
    Figure { rows, pictures: pictures(&outcomes, &models) }
}

fn modelled(trials: &[Arc<TrialResult>]) -> Modelled {
    let rates = trials.iter().map(|trial| trial.gets_per_second()).filter(|rate| rate.is_finite());
    let rates: Vec<f64> = rates.collect();
    let why = || trials.iter().find_map(|trial| trial.failure());
    let why = || {
        why().map_or_else(|| "nothing reached the disk".into(), |shortfall| shortfall.to_string())
    };
    if rates.is_empty() { Err(why()) } else { Ok(mean(&rates)) }
}

fn beside(model: &Modelled, fewer_buffers: Option<FewerBuffers>) -> String {
    let model = match model {
        Ok(rate) => format!("the model at this scale: {rate:.1}"),
        Err(why) => format!("the model has no value at this scale: {why}"),
    };
    let fewer = fewer_buffers.map(|fewer| format!("; {fewer}"));
    model + &fewer.unwrap_or_default()
}

/// The techniques run in turn for each seed. So a disturbance of the machine affects all of them.
fn measure(context: &Context, lab: &Lab) -> Vec<TechniqueOutcome> {
    let mut outcomes = TECHNIQUES.map(|(_, scheme)| TechniqueOutcome {
        scheme,
        gets: Ok(Vec::new()),
        reads: Ok(Vec::new()),
        files: Vec::new(),
        lost: 0,
        fewer_buffers: None,
    });
    for &seed in &lab.extent().seeds {
        let stream = lab.stream(seed, Mix::PAPER);
        for TechniqueOutcome { scheme, gets, reads, files, lost, fewer_buffers } in &mut outcomes {
            let run = Run::new(&context.folder, *scheme, seed, &stream.operations, context.watch)
                .with_mapping(UfsMapping::RoundRobin);
            let written = run.write();
            *fewer_buffers = written.as_ref().ok().and_then(|run| run.fewer_buffers);
            files.extend(
                written
                    .as_ref()
                    .ok()
                    .map(|run| (run.creates + run.counts.unlinks) as f64 / run.gets.max(1) as f64),
            );
            let written = written.map(|run| run.rate);
            let read = written.clone().and_then(|_| run.read_again());
            *lost += read.as_ref().map_or(0, |read| read.lost);
            add(gets, written);
            add(reads, read.map(|read| read.rate));
        }
    }
    outcomes.into()
}

fn add(rates: &mut Rates, next: Result<f64, Missing>) {
    match (&mut *rates, next) {
        (Ok(rates), Ok(rate)) => rates.push(rate),
        (Ok(_), Err(why)) => *rates = Err(why),
        (Err(_), _) => {}
    }
}

fn pictures(outcomes: &[TechniqueOutcome], models: &[Modelled]) -> Vec<Picture> {
    let names = || TECHNIQUES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let rates = |of: fn(&TechniqueOutcome) -> &Rates| {
        outcomes.iter().map(move |outcome| of(outcome).clone().unwrap_or_default())
    };
    let models = models.iter().map(|model| model.iter().copied().collect());
    let paper = TECHNIQUES.map(|(name, _)| in_chart(NAME, name));
    let written = vec![
        quoted_bars(paper),
        bars("foxy's model", models),
        bars("this disk", rates(|outcome| &outcome.gets)),
    ];
    let read = vec![bars("this disk", rates(|outcome| &outcome.reads))];
    vec![
        Picture::bars(
            [
                "Table 2 in the paper, on the model at this scale, and on this machine's disk",
                RATE,
                "",
            ],
            names(),
            written,
        ),
        Picture::bars(
            ["Table 2 on this machine's disk: stored objects, read page by page", READS, ""],
            names(),
            read,
        ),
    ]
}

fn ratios(outcomes: &[TechniqueOutcome], filled: &Condition, scale: f64) -> Vec<FigureRow> {
    let over_squid = |scheme: SchemeName, of: fn(&TechniqueOutcome) -> &Rates| -> Rates {
        let find = |scheme: SchemeName| {
            of(outcomes.iter().find(|outcome| outcome.scheme == scheme).expect("one of the table"))
        };
        match (find(scheme), find(SchemeName::Ufs)) {
            (Ok(above), Ok(below)) => {
                Ok(above.iter().zip(below).map(|(above, below)| above / below).collect())
            }
            (Err(missing), _) | (_, Err(missing)) => Err(missing.clone()),
        }
    };
    let files = |scheme| {
        let found = outcomes.iter().find(|outcome| outcome.scheme == scheme);
        found.map_or(&[][..], |outcome| &outcome.files)
    };
    let cause = |scheme| {
        let count = "files created and deleted for a URL-get";
        Condition::smaller(
            "file creation and deletion",
            count,
            files(scheme),
            files(SchemeName::Ufs),
        )
    };
    let gets = |name, scheme| match over_squid(scheme, |outcome| &outcome.gets) {
        Ok(values) => row(NAME, name, "times", &values, scale)
            .judged()
            .gain()
            .under(filled.clone())
            .under(cause(scheme))
            .under(Condition::TwoScales { other: None })
            .with_note(CACHED),
        Err(missing) => missing.row(NAME, name, "times", scale),
    };
    let reads = |name, scheme| match over_squid(scheme, |outcome| &outcome.reads) {
        Ok(values) => row(NAME, name, "times", &values, scale),
        Err(missing) => missing.row(NAME, name, "times", scale),
    };
    vec![
        gets("LAZY-READS-LOC over SQUID", SchemeName::LazyReadsLoc),
        gets("BUDDY over SQUID", SchemeName::Buddy),
        reads("LAZY-READS-LOC over SQUID, read from the disk", SchemeName::LazyReadsLoc),
        reads("STREAM-PACKETIZER over SQUID, read from the disk", SchemeName::Packetizer),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_lab::simulation::figures::Extent;
    use foxy_lab::simulation::storage::runs::Watch;

    #[test]
    fn a_stopped_figure_simulates_nothing_so_that_the_program_ends_soon() {
        let folder = tempfile::tempdir().expect("a folder");
        let lab = Lab::new(Extent { scale: 0.02, seeds: vec![1], threads: 1 }, &|_, _| {});
        let watch = Watch::default();
        watch.stop.store(true, Relaxed);
        let context = Context { lab: &lab, folder: folder.path().into(), watch: &watch };
        assert_eq!(table_2(&context), Figure::default());
    }

    #[test]
    fn a_model_without_a_value_says_why_instead_of_a_number() {
        assert_eq!(
            beside(&modelled(&[]), None),
            "the model has no value at this scale: nothing reached the disk"
        );
        let fewer = Some(FewerBuffers { there: 27, asked: 128 });
        let expected = "the model at this scale: 12.3; 27 instead of 128 locality buffers, because \
                        all buffers together may take at most a quarter of the store";
        assert_eq!(beside(&Ok(12.34), fewer), expected);
    }
}
