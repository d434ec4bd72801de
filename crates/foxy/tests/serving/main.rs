//! Tests the program foxy as operators and users see it: commands, settings, stores, purges and
//! signals.

#[path = "../support/mod.rs"]
mod support;

mod access_log;
mod authority;
mod begun_anew;
mod block_device;
mod clock;
mod command_line;
mod forgotten;
mod fsck;
mod in_use;
mod large_objects;
mod mixed_stores;
mod names;
mod own_machine;
mod purge;
mod readme;
mod run;
mod serve;
mod signals;
mod silent_disk;
mod start_up;
mod store_commands;
mod taken_ports;
mod worn_store;
