//! Starts a proxy at a free port until it returns its first object. Tries another port if another
//! program took it.

use super::control_group::ControlGroup;
use super::process::Running;
use super::ready::{self, NotReady};
use super::{Description, Peer, Plan};
use foxy_cli::terminal::{self, Level};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const ATTEMPTS: u32 = 5;

pub struct Start<'a> {
    pub peer: &'a Peer,
    pub program: &'a Path,
    pub name: &'a str,
    pub host: SocketAddr,
    pub limit: Option<&'a ControlGroup>,
    pub interrupted: &'a AtomicBool,
}

impl Start<'_> {
    pub fn start(
        &self,
        description: &mut Description,
        plan: impl Fn(&Description) -> Plan,
    ) -> Result<(Running, Plan), String> {
        let name = self.name;
        for attempt in 1..=ATTEMPTS {
            description.listen = ready::free_place(name)?;
            let plan = plan(description);
            let mut running =
                Running::start(self.peer, self.program, description, &plan, self.limit)?;
            let what = (&*description, self.host);
            match ready::wait_until_ready(&mut running, name, what, self.interrupted) {
                Ok(()) => return Ok((running, plan)),
                Err(NotReady::Failed(why)) => return Err(why),
                Err(NotReady::PortTaken) if attempt < ATTEMPTS => {
                    let listen = description.listen;
                    let what = format!(
                        "{name}: another program took {listen}; starting it at another port"
                    );
                    terminal::report(Level::Warning, &what);
                }
                Err(NotReady::PortTaken) => {}
            }
            running.stop();
            // A retry lays the folder out again.
            let _laid_out_anew = std::fs::remove_dir_all(&description.folder);
        }
        Err(format!(
            "{name} did not come up: other programs took each of {ATTEMPTS} ports; try again"
        ))
    }
}
