//! Finds the members of the fleet by DNS again and again, on a thread of its own. While DNS fails,
//! the last members stay.

use crate::failure::Failure;
use crate::settings::Settings;
use crate::settings::rows::FleetChapter;
use crate::terminal::{self, Level};
use foxy_fleet::Member;
use foxy_fleet::found::{MemberRecords, NotFound};
use foxy_proxy::upstream::NameResolver;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest wait of a starting node for DNS.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause between two look-ups. The resolver answers from its cache until the TTL of the records
/// ends.
const PAUSE: Duration = Duration::from_secs(1);

type FoundMembers = Result<Vec<Member>, NotFound>;

/// The search for members by DNS. Dropping it ends its thread within seconds.
#[derive(Debug)]
pub struct Discovery {
    fleet: FleetChapter,
    answers: Mutex<Receiver<FoundMembers>>,
    state: Mutex<DiscoveryState>,
}

#[derive(Debug)]
struct DiscoveryState {
    /// The found members that are in force, in the form of `fleet.members`.
    members: Vec<String>,
    /// The reason why the last look-up failed.
    failure: Option<String>,
}

/// Returns the settings with the members that DNS gives now, if they name DNS records. If DNS does
/// not answer in time, this node is alone until DNS answers.
pub fn with_found_members(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if let Ok(Some(discovery)) = Discovery::start(&settings) {
        let answers = discovery.answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let found = answers.recv_timeout(PATIENCE).ok().and_then(Result::ok);
        let fleet = with_members(&settings.fleet, &found.unwrap_or_default());
        if matches!(fleet.fleet(), Some(Ok(_))) {
            settings.fleet = fleet;
        }
    }
    settings
}

fn with_members(fleet: &FleetChapter, members: &[Member]) -> FleetChapter {
    FleetChapter { members: members.iter().map(Member::to_string).collect(), ..fleet.clone() }
}

impl Discovery {
    /// Starts to look up the members of the fleet. The members of the settings are in force.
    /// Returns `None` if the settings name no DNS records.
    pub fn start(settings: &Settings) -> Result<Option<Self>, Failure> {
        let (fleet, servers) = (settings.fleet.clone(), settings.network.name_servers.clone());
        let Some(records) = fleet.records() else { return Ok(None) };
        let (sender, answers) = sync_channel(1);
        let thread = std::thread::Builder::new().name("fleet-names".into());
        let spawned = thread.spawn(move || look_up_all(&records, &servers, &sender));
        spawned.map_err(|error| {
            Failure::Failed(format!("cannot start a thread for `fleet.members-from`: {error}"))
        })?;
        let state = DiscoveryState { members: fleet.members.clone(), failure: None };
        Ok(Some(Self { fleet, answers: Mutex::new(answers), state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, DiscoveryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the settings of the fleet with the members that DNS gives, if other members are in
    /// force. Reports the beginning of a failure.
    pub fn changed(&self) -> Option<FleetChapter> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.try_iter().last()?;
        drop(answers);
        let read = answer.map_err(|error| error.to_string()).and_then(|members| {
            let fleet = with_members(&self.fleet, &members);
            match fleet.fleet() {
                Some(Err(error)) => Err(error),
                _ => Ok(fleet),
            }
        });
        let mut state = self.state();
        match read {
            Ok(fleet) => {
                state.failure = None;
                (fleet.members != state.members).then_some(fleet)
            }
            Err(why) => {
                if state.failure.is_none() {
                    let text = format!(
                        "foxy: DNS gives no list of the fleet's members: {why}; the last members \
                         stay; correct the DNS records or `fleet.members-from`"
                    );
                    terminal::report(Level::Warning, &text);
                }
                state.failure = Some(why);
                None
            }
        }
    }

    /// Notes that the members of `fleet` are in force.
    pub fn applied(&self, fleet: FleetChapter) {
        let names = fleet.member_names().join(", ");
        terminal::report(Level::Info, &format!("foxy: members of the fleet by DNS: {names}"));
        self.state().members = fleet.members;
    }

    /// Returns true if the last look-up failed.
    pub fn fails(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Returns the DNS records and the last failure as JSON.
    pub fn as_json(&self) -> Value {
        json!({ "dns": self.fleet.members_from, "failure": self.state().failure })
    }
}

/// Sends the answer to each look-up, until the receiver is gone. Drops the answer if the receiver
/// has not taken the previous answer.
fn look_up_all(
    records: &MemberRecords,
    servers: &[SocketAddr],
    answers: &SyncSender<FoundMembers>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // The proxy's workers report why the resolver or a runtime is unusable.
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let Ok(resolver) = NameResolver::new(servers) else { return };
        loop {
            let answer = records.find(&resolver).await;
            if matches!(answers.try_send(answer), Err(TrySendError::Disconnected(_))) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
}
