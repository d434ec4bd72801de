//! Measures how long a killed store takes to restart, for `foxy store bench engine`. The first
//! store is small and full of records. The second store has the size of a terabyte disk. To save
//! space, its files contain the bodies of only a few records.

use super::engine::{MeasureBar, MeasureRow};
use super::ground::Ground;
use clap::ArgMatches;
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::progress::Progress;
use foxy_device::{Blocking, DeviceSettings, DirectIo, Root, open_device};
use foxy_lab::simulation::store_bench::engine::{self, Store};
use foxy_lab::simulation::store_bench::restart::{
    self, RestartPatience, RestartedStore, SparseDevice,
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(300);

const KEPT: usize = 128 << 10;

const WHOLE: u64 = 1000;

struct Case {
    size: u64,
    length: usize,
    hollow: bool,
}

pub fn rows(matches: &ArgMatches, scale: u32, seed: u64) -> Result<Vec<MeasureRow>, Failure> {
    let full = Case { size: (4 << 30) >> scale.min(4), length: 16 << 10, hollow: false };
    let large = Case { size: (1 << 40) >> scale, length: 256 << 10, hollow: true };
    let lost = hits_lost(scale, seed)?;
    let ground = Ground::new(matches)?;
    let mut rows = killed(&ground, &full, seed)?;
    rows.extend(killed(&ground, &large, seed)?);
    rows.push(lost);
    Ok(rows)
}

fn hits_lost(scale: u32, seed: u64) -> Result<MeasureRow, Failure> {
    let refused = |status| Failure::Failed(format!("the store does not serve: {status:?}"));
    let (size, requests) = ((1 << 30) >> scale, 4_000_000 >> scale);
    let mut progress = Progress::new("hits", Some(2 * requests));
    let never = restart::hit_ratio(size, requests, 0, seed, &mut |done| progress.update(done))
        .map_err(refused)?;
    let often =
        restart::hit_ratio(size, requests, 3, seed, &mut |done| progress.update(requests + done))
            .map_err(refused)?;
    drop(progress);
    let note =
        format!("{requests} requests to {} MiB, three kills; {never:.4} without", size >> 20);
    Ok(MeasureRow::new(
        "hit_ratio_lost_by_kills",
        never - often,
        "share",
        MeasureBar::AtMost(0.001),
        note,
    ))
}

/// Fills a store, leaves its files as a killed process would, and measures the time until the store
/// is open again.
#[expect(clippy::cast_precision_loss, reason = "measures")]
fn killed(ground: &Ground, case: &Case, seed: u64) -> Result<Vec<MeasureRow>, Failure> {
    let failed = |text: &str| ground.failed(text);
    let folder = ground.folder();
    let count = case.size / 5 * 4 / case.length as u64;
    let root = ground.open(&folder)?;
    let filled = fill(case, seed, count, &root, ground.interrupted());
    ground.whole(filled)?.map_err(|text| failed(&text))?;
    let (device, kind) = open_device(&root, DeviceSettings::default())
        .map_err(|error| failed(&error.to_string()))?;
    let store = RestartedStore::start(case.size, seed, device)
        .map_err(|error| failed(&error.to_string()))?;
    let newest = engine::record(count - 1, case.length);
    let patience = RestartPatience { limit: PATIENCE, stop: ground.interrupted() };
    let first = store.first_hit(count - 1, &newest, patience);
    let all = store.all_known(patience);
    let milliseconds =
        |time: Option<Duration>| time.map_or(f64::INFINITY, |time| time.as_secs_f64() * 1e3);
    let note = format!(
        "{} GiB{}, {count} records of {} KiB, {kind}; all known after {:.0} ms",
        case.size >> 30,
        if case.hollow { " with holes" } else { "" },
        case.length >> 10,
        milliseconds(all)
    );
    let mut rows = vec![MeasureRow::new(
        "first_hit_after_kill_ms",
        milliseconds(first),
        "ms",
        MeasureBar::AtMost(100.0),
        note.clone(),
    )];
    let back = if case.hollow {
        store.records()
    } else {
        let holds = |&number: &u64| store.holds(number, &engine::record(number, case.length));
        let goes_on = |_: &u64| !ground.interrupted().load(Relaxed);
        (0..count).take_while(goes_on).filter(holds).count() as u64
    };
    let share = back as f64 / count as f64;
    rows.push(MeasureRow::new(
        "objects_back_share",
        share,
        "share",
        MeasureBar::AtLeast(0.999),
        note,
    ));
    store.close();
    ground.whole(rows)
}

fn fill(case: &Case, seed: u64, count: u64, root: &Root, stop: &AtomicBool) -> Result<(), String> {
    let kept = if case.hollow { KEPT } else { usize::MAX };
    let store =
        Store::open(case.size, seed, SparseDevice::new(Blocking::new(root, DirectIo::Off), kept));
    let mut store = store.map_err(|status| format!("the store does not serve: {status:?}"))?;
    let mut progress = Progress::new("killed store", Some(count));
    let same = engine::record(0, case.length);
    for number in 0..count {
        if store.statistic("no_room") > 0 {
            return Err(format!(
                "no space left: this benchmark fills a store of {}",
                ByteSize(case.size)
            ));
        }
        if stop.load(Relaxed) {
            break;
        }
        if number + WHOLE == count {
            store.flush();
            store.device().keep(usize::MAX);
        }
        let is_kept = !case.hollow || number + WHOLE >= count;
        let record = if is_kept { engine::record(number, case.length) } else { same.clone() };
        store.put(number, &record);
        progress.update(number);
    }
    store.flush();
    drop(store.kill());
    let file = root.path().join(foxy_store::webcosm::FILE_NAME);
    let whole = std::fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .and_then(|file| file.set_len(case.size));
    whole.map_err(|error| format!("{}: {error}", file.display()))
}
