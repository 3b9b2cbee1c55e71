#!/bin/sh
# Makes the disk of a whole Debian 12 machine: debian.sh MIRROR FOLDER, as root, writes FOLDER/disk.ext4 (0.5 GB, and no agent in it). It takes
# about 70 s; FOLDER/made-of says by which version of this file it was made. What a test adds comes with the machine's start (tests/lab/debian.rs).
set -eu

mirror=$1
folder=$2

# What an ordinary machine of a cloud runs, a batch system and a container engine that nobody has configured yet, and containers.
packages="systemd,systemd-sysv,dbus,libpam-systemd,udev,kmod,iproute2,procps,openssh-server,cron,at,rsyslog,logrotate,chrony"
packages="$packages,unattended-upgrades,prometheus-node-exporter,python3-minimal,containerd,runc,docker.io,slurmd,slurmctld,slurm-client,munge"

root=$folder/root
rm -rf "$root" "$folder/disk.ext4" "$folder/made-of"
mkdir -p "$folder"
debootstrap --variant=minbase --include="$packages" bookworm "$root" "$mirror"

echo debian >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 debian\n' >"$root/etc/hosts"
# Its network ends at this host: no gateway and no resolver.
: >"$root/etc/resolv.conf"
printf '[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\nLinkLocalAddressing=no\n' >"$root/etc/systemd/network/10-lab.network"
# Each machine makes its own at its first start.
: >"$root/etc/machine-id"
chroot "$root" systemctl --quiet enable systemd-networkd
chroot "$root" systemctl --quiet disable docker.service docker.socket munge slurmctld slurmd
rm -f "$root"/var/cache/apt/archives/*.deb "$root/var/log/bootstrap.log"

truncate -s 2G "$folder/disk.ext4"
mke2fs -q -t ext4 -d "$root" "$folder/disk.ext4"
rm -rf "$root"
# Last, so that an interrupted run is taken up again.
sha256sum <"$0" >"$folder/made-of"
