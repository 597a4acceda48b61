//! The program behind `cargo box`: hands the command line to the library and turns its answer into an exit
//! status.

use std::process::ExitCode;

use clap::Parser as _;
use freehold_box::base::error_chain::chain;
use freehold_box::presentation::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}
