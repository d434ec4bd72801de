//! Tests the commands of the lab as programs.

#[path = "../support/mod.rs"]
mod support;

mod collector;
mod compare;
mod disk;
mod figure;
mod figure_measured;
mod lab_commands;
mod leap;
mod leap_checks;
mod leap_clients;
mod leap_start;
mod leap_tls;
mod load_doubtful;
mod load_tls;
mod load_trace;
mod peak;
mod sim;
mod sim_fleet;
mod sim_interrupted;
mod trace_commands;
mod wpb;
