//! Purges on all nodes of a fleet. Starts this node as a member, saves its position in the log of
//! purges, and shows the state of its purges.

use crate::failure::Failure;
use crate::secret_file;
use crate::serve::admin::metrics::{Exposition, FamilyKind};
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_base::Random;
use foxy_fleet::purges::address::{EngineAddress, EngineCredentials};
use foxy_fleet::purges::engine::Durability;
use foxy_fleet::purges::entry::Process;
use foxy_fleet::purges::place::{NAME, StoredPlace};
use foxy_fleet::purges::runner::{FleetMember, FleetNews, MemberList, MemberParts};
use foxy_fleet::purges::saved::Binding;
use foxy_fleet::purges::session::ValidateCause;
use foxy_fleet::purges::status::{ACKNOWLEDGED_WITHIN, FleetPurgeFigures, FleetPurgeStatus};
use foxy_proxy::cache::purge::Purges;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// This node's membership in a fleet with an engine. `None` without an engine.
pub struct FleetPurges(Option<FleetMember>);

impl FleetPurges {
    /// Returns the state of the fleet's purges on this node.
    pub fn facts(&self) -> FleetPurgeFacts {
        FleetPurgeFacts(self.0.as_ref().map(FleetMember::status))
    }

    /// Returns a handle that changes the list of the fleet's members in the engine. `None` without
    /// an engine.
    pub fn list(&self) -> Option<MemberList> {
        self.0.as_ref().map(FleetMember::list)
    }

    /// Gives up this node's lease. Without a lease, a node may not answer from its cache without
    /// validation, and purges do not wait for this node.
    pub fn end(self) {
        drop(self.0);
    }
}

/// Returns the number after which this node's list of purges continues. `era` is the random number
/// of the list, and `latest` the number of its last purge. If the file of the fleet does not fit to
/// the list, this node will validate every stored response, and the number depends on `random`.
pub fn continued(
    settings: &Settings,
    folder: Option<&Path>,
    (era, latest): (u64, u64),
    random: &mut Random,
) -> Result<u64, Failure> {
    let fleet = &settings.fleet;
    let (Some(_), Some(node), Some(folder)) = (&fleet.engine, &fleet.node, folder) else {
        return Ok(latest);
    };
    let file = folder.join(NAME);
    let place = StoredPlace(Some(folder.to_owned()));
    let now = Binding::new(node.as_str(), era, latest);
    let checked = place.check(now, random).map_err(|error| {
        let file = file.display();
        Failure::Unusable(format!(
            "cannot replace {file}, which does not fit the purge list: {error}; remove the file"
        ))
    })?;
    if let Some(why) = checked.forgotten {
        let file = file.display();
        let text = format!("foxy: {file} {}, so foxy validates every stored response", why.text());
        terminal::report(Level::Warning, &text);
    }
    Ok(checked.latest)
}

impl FleetPurgeFacts {
    /// Returns true if a purge at this node holds on all nodes of the fleet.
    pub const fn are_shared(&self) -> bool {
        self.0.is_some()
    }
}

/// Starts this node as a member of a fleet with an engine, and sends its purges to the fleet.
/// Without `fleet.engine`, purges stay on this node.
pub fn start(
    settings: &Settings,
    purges: &mut Purges,
    folder: Option<&Path>,
    random: &mut Random,
) -> Result<FleetPurges, Failure> {
    let fleet = &settings.fleet;
    let (Some(url), Some(node)) = (&fleet.engine, &fleet.node) else {
        return Ok(FleetPurges(None));
    };
    let unusable = |why| Failure::Unusable(format!("`fleet.engine`: {why}"));
    let credentials = credentials(settings)?;
    let address = EngineAddress::new(url.with_secrets(), credentials.as_ref()).map_err(unusable)?;
    let parts = MemberParts {
        me: Process { member: node.as_str().into(), run: random.next_u64() },
        members: fleet.member_names(),
        engine: address.engine(),
        watch: address.watch(),
        local: purges.clone(),
        place: Box::new(StoredPlace(folder.map(Path::to_owned))),
        news: Box::new(report),
        seed: random.next_u64(),
    };
    let member = FleetMember::start(parts).map_err(|error| {
        Failure::Failed(format!("cannot start a thread for the fleet's purges: {error}"))
    })?;
    purges.fleet = Some(member.keeper());
    Ok(FleetPurges(Some(member)))
}

/// Reads the credentials for the engine from the file of `fleet.engine-credentials-file`, if this
/// setting is given.
pub fn credentials(settings: &Settings) -> Result<Option<EngineCredentials>, Failure> {
    settings.fleet.engine_credentials_file.as_deref().map(read_credentials).transpose()
}

fn read_credentials(path: &Path) -> Result<EngineCredentials, Failure> {
    let read = |line: &[u8]| EngineCredentials::read(std::str::from_utf8(line).ok()?);
    let form = "USER:PASSWORD or :PASSWORD";
    secret_file::read_line(path, "fleet.engine-credentials-file", form, read)
}

fn report(news: FleetNews) {
    let (level, text) = match news {
        FleetNews::NotDurable(Durability::Weak(setting)) => (
            Level::Warning,
            format!(
                "the fleet's engine may lose purges that it confirmed, because {setting}; change \
                 this in the engine's configuration; after a loss, foxy validates every stored \
                 response"
            ),
        ),
        FleetNews::NotDurable(_) => (
            Level::Warning,
            "foxy cannot read the settings of the fleet's engine; check that Redis has `appendonly \
             yes` and `appendfsync always`, or NATS `sync_interval: always`"
                .into(),
        ),
        FleetNews::ValidatesAll(cause) => (
            Level::Warning,
            format!("foxy validates every response that it stored before now: {}", why(cause)),
        ),
        FleetNews::PlaceNotSaved(error) => (
            Level::Warning,
            format!(
                "{NAME} cannot be written, so this node validates every stored response: {error}"
            ),
        ),
    };
    terminal::report(level, &format!("foxy: {text}"));
}

const fn why(cause: ValidateCause) -> &'static str {
    match cause {
        ValidateCause::NewChain => "the fleet's engine lost entries of the purge log",
        ValidateCause::Missed => {
            "entries left the purge log before this node read them, or this node is new"
        }
        ValidateCause::NoProof => {
            "the fleet's engine restarted, and a node that may know lost purges does not answer"
        }
    }
}

/// The figures of a fleet's purges on this node, if it belongs to a fleet.
#[derive(Clone, Debug, Default)]
pub struct FleetPurgeFacts(pub Option<Arc<FleetPurgeStatus>>);

impl FleetPurgeFacts {
    /// Returns the trouble with the fleet's engine, if it gives no usable answer.
    pub fn trouble(&self) -> Option<String> {
        let error = self.0.as_ref()?.figures().engine_error?;
        Some(format!(
            "the fleet's engine gives no usable answer: {error}; foxy refuses purges, and soon \
             validates every stored response; start or mend the engine, or correct `fleet.engine`"
        ))
    }

    /// Returns as JSON the figures of this node's purges, and the time until each node's lease
    /// ends. `None` without an engine.
    pub fn as_json(&self) -> Option<Value> {
        let figures = self.0.as_ref()?.figures();
        let FleetPurgeFigures { report, acknowledged, acknowledged_time, failed, .. } = figures;
        let count: u64 = acknowledged.iter().sum();
        let mean = (count > 0).then(|| acknowledged_time.as_secs_f64() / count as f64);
        let leases = report.others.iter().map(|(process, _, left)| (&process.member, *left));
        let mut longest = BTreeMap::<&str, f64>::new();
        for (name, left) in leases {
            let known = longest.entry(name).or_default();
            *known = known.max(left.as_secs_f64());
        }
        Some(json!({
            "is_connected": report.is_connected,
            "lease_seconds": report.lease_left.as_secs_f64(),
            "lag": report.lag,
            "waiting": report.waiting,
            "acknowledged": count,
            "failed": failed,
            "mean_seconds": mean,
            "leases": longest,
        }))
    }

    /// Adds the metrics of the fleet's purges.
    pub fn expose(&self, page: &mut Exposition) {
        let Some(status) = &self.0 else { return };
        let figures = status.figures();
        let FleetPurgeFigures { report, acknowledged, acknowledged_time, .. } = &figures;
        let gauges = [
            (
                "engine_up",
                "Whether the engine of the fleet answers.",
                f64::from(u8::from(report.is_connected)),
            ),
            (
                "lease_seconds",
                "Time in seconds until this node's lease ends.",
                report.lease_left.as_secs_f64(),
            ),
            (
                "log_lag_entries",
                "Entries of the purge log that this node has not applied yet.",
                report.lag.map_or(f64::NAN, |lag| lag as f64),
            ),
            (
                "chain_broken",
                "Whether the purge log has lost entries and no new chain has begun.",
                f64::from(u8::from(report.broken.is_some())),
            ),
            ("purges_waiting", "Purges that are not acknowledged yet.", report.waiting as f64),
        ];
        for (name, help, value) in gauges {
            page.single(&format!("foxy_fleet_{name}"), FamilyKind::Gauge, help, value);
        }
        let counter = FamilyKind::Counter;
        let broken: Vec<_> =
            report.breaks.iter().map(|(why, count)| ([("reason", why.name())], *count)).collect();
        page.family(
            "foxy_fleet_chain_breaks_total",
            counter,
            "Times that this node noticed lost entries of the purge log.",
            broken.iter().map(|(labels, count)| (&labels[..], *count)),
        );
        let causes = ["new-chain", "missed", "no-proof"];
        let causes: Vec<_> =
            causes.iter().zip(figures.validations).map(|(why, n)| ([("cause", *why)], n)).collect();
        page.family(
            "foxy_fleet_validations_total",
            counter,
            "Times that this node had to validate everything it stored.",
            causes.iter().map(|(labels, count)| (&labels[..], *count)),
        );
        page.single(
            "foxy_fleet_purges_failed_total",
            counter,
            "Purges that the fleet refused or did not confirm.",
            figures.failed,
        );
        let ends = ACKNOWLEDGED_WITHIN.iter().map(ToString::to_string).chain(["more".to_owned()]);
        let ends: Vec<String> = ends.collect();
        let classes: Vec<_> =
            ends.iter().zip(acknowledged).map(|(end, n)| ([("within", end.as_str())], n)).collect();
        page.family(
            "foxy_fleet_purges_acknowledged_total",
            counter,
            "Purges that every node with a lease applied, by time until then in seconds.",
            classes.iter().map(|(labels, count)| (&labels[..], *count)),
        );
        page.single(
            "foxy_fleet_purges_acknowledged_seconds_total",
            counter,
            "Sum of the times from a purge request to its acknowledgement, in seconds.",
            acknowledged_time.as_secs_f64(),
        );
    }
}
