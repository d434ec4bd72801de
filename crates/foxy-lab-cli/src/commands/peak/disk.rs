//! Records how busy the disks of a started proxy were, at the peak and in each window (a span of
//! time with a constant load) of the search.

use crate::peers::usage::Moment;
use foxy_lab::load::peak::{SUMMARY_FROM, Window};
use foxy_report::statistics::mean;
use foxy_report::{Measure, Record, Timeline};

/// Returns the run records about the use of the disks. `samples` has each window (a span of time
/// with a constant load) with the disk usage at its end. A disk whose usage is unknown has no
/// record.
pub fn records(subject: &str, samples: &[(Window, Moment)]) -> Vec<Record> {
    let pairs: Vec<_> = samples.windows(2).collect();
    let late = pairs.iter().position(|pair| pair[0].0.fill >= SUMMARY_FROM);
    let disks = samples.first().map_or(0, |(_, moment)| moment.disks());
    let shares = |disk: usize| -> Option<Vec<(f64, f64)>> {
        let share = |pair: &&[(Window, Moment)]| {
            let share = pair[0].1.until(&pair[1].1).disks().nth(disk)??;
            Some((pair[1].0.end.as_secs_f64(), share))
        };
        pairs.iter().map(share).collect()
    };
    let mut found = Vec::new();
    for disk in 0..disks {
        let Some(shares) = shares(disk).filter(|shares| !shares.is_empty()) else { continue };
        let name = format!("disk_{}_busy", disk + 1);
        found.push(Record::Timeline(Timeline::new(&name, subject, "share", &shares)));
        if let Some(late) = late {
            let at_peak: Vec<f64> = shares[late..].iter().map(|&(_, share)| share).collect();
            let name = format!("peak_{name}");
            let measure = Measure::once(&name, subject, mean(&at_peak), "share");
            found.push(Record::Measure(measure));
        }
    }
    if let (Some(late), Some((_, last))) = (late, samples.last()) {
        let cores = samples[late].1.until(last).cores();
        found.push(Record::Measure(Measure::once("peak_cores", subject, cores, "cores")));
    }
    found
}
