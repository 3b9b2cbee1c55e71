//! The laboratory: real counterparts for the scenarios to work against.
//!
//! Every part starts something real (the built binaries, a kernel in a micro-VM, a database server, a mail server, an
//! EC2 API), waits for the event that says it is ready, and ends it by its own process id when it is dropped. A part
//! that is missing is a panic that names the command which installs it; nothing here skips.

pub mod agent;
pub mod answering;
pub mod aws;
pub mod binaries;
pub mod browser;
pub mod certificates;
pub mod containerd;
pub mod debian;
pub mod ec2_signature;
pub mod enclosure;
pub mod fleet;
pub mod gce;
pub mod gcp;
pub mod hostile;
pub mod iam;
pub mod image;
pub mod imds;
pub mod initramfs;
pub mod kernels;
pub mod labelled;
pub mod lost_ends;
pub mod mail;
pub mod microvm;
pub mod namespace;
pub mod nvml;
pub mod once;
pub mod orphan;
pub mod partners;
pub mod pipelines;
pub mod port;
pub mod postgres;
pub mod process;
pub mod pty;
pub mod quiet;
pub mod recorded;
pub mod relay;
pub mod rollups;
pub mod sample;
pub mod short_lived;
pub mod slack;
pub mod sleepers;
pub mod slurm;
pub mod smtp;
pub mod stuck_job;
pub mod sweeper;
pub mod timed;
pub mod tmpfs;
pub mod truth;
pub mod wait;
pub mod xml;
