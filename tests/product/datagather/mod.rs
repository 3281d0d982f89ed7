//! Data gathering: the plan as data, archives on disk, the upload protocol, whole runs.

mod alone;
mod archive;
mod canaries;
mod collect;
mod configured;
mod crash;
mod echo;
mod embedded;
mod hiding;
mod job_crash;
mod jobs;
mod leaders;
mod listing;
mod operator;
mod periodic;
mod plan;
mod remote;
mod rights;
mod rows_of_gatherers;
mod runners;
mod runs;
mod runtimes;
mod sheet;
mod stop;
mod store;
mod upload;
