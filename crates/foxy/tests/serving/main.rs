//! Tests the program foxy as operators and users see it: commands, settings, stores, purges and
//! signals.

#[path = "../support/mod.rs"]
mod support;

mod access_log;
mod activation;
mod authority;
mod book {
    mod chapters;
    mod pasted;
    mod readme;
}
mod clock;
mod command_line;
mod configuration {
    mod acme;
    mod import;
    mod trial;
    mod users;
}
mod logs {
    mod accounts;
    #[cfg(feature = "otlp")]
    mod otlp;
    mod questions;
    mod readers;
    mod transactions;
}
mod names;
mod network {
    mod admin;
    mod listeners;
    mod monitoring;
    mod named_clients;
    mod own_machine;
    mod transparent;
}
mod packages;
mod parents;
mod purge;
mod reload;
mod run;
mod serve;
mod shared_runs;
mod signals;
mod start_up;
mod stores {
    mod begun_anew;
    mod block_device;
    mod forgotten;
    mod fsck;
    mod in_use;
    mod large_objects;
    mod listing;
    mod maps;
    mod mixed_stores;
    mod silent_disk;
    mod store_commands;
    mod worn_store;
}
mod taken_ports;
mod upgrade;
