#!/bin/sh
# Makes sure that a container engine answers and that the base image can be had. Run by `make engine`; idempotent.
set -eu

BASE_IMAGE=debian:bookworm-slim
LOG=${DOCKERD_LOG:-/var/log/dockerd.log}
START_TIMEOUT_S=60

answers() { docker version >/dev/null 2>&1; }

give_up() {
    echo "engine: $1" >&2
    exit 1
}

can_install() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

install() {
    echo "engine: installing $*"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o Acquire::Retries=3 -q update >/dev/null
    apt-get -o Acquire::Retries=3 -qy install --no-install-recommends "$@" >/dev/null
}

mount_cgroups() {
    # A plain virtual machine without an init system may not have mounted them.
    if [ ! -e /sys/fs/cgroup/cgroup.controllers ] && [ ! -d /sys/fs/cgroup/memory ]; then
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
    fi
}

start_by_hand() {
    echo "engine: starting dockerd, log in $LOG"
    mount_cgroups
    setsid dockerd >>"$LOG" 2>&1 </dev/null &
    waited=0
    until answers; do
        [ "$waited" -lt "$START_TIMEOUT_S" ] || { tail -n 20 "$LOG" >&2; give_up "dockerd did not answer within $START_TIMEOUT_S s."; }
        sleep 1
        waited=$((waited + 1))
    done
}

start() {
    if [ -d /run/systemd/system ]; then
        systemctl enable --now docker
    else
        start_by_hand
    fi
    answers || give_up "Docker was started but does not answer: see \`docker version\` and \`journalctl -u docker\`."
}

if ! answers; then
    if [ -n "${DOCKER_HOST:-}" ]; then
        give_up "nothing answers at DOCKER_HOST=$DOCKER_HOST. Start that engine, or unset the variable."
    fi
    if [ "$(id -u)" -ne 0 ] && [ -S /var/run/docker.sock ]; then
        give_up "Docker is there, but not for you: \`sudo usermod -aG docker $(id -un)\`, then log in again; or start it: \`sudo systemctl start docker\`."
    fi
    if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
        can_install || give_up "no Docker engine answers. On Debian or Ubuntu run \`sudo make engine\`; elsewhere install Docker 20.10 or newer and start it."
        # From trixie on the client is a package of its own.
        if apt-cache show docker-cli >/dev/null 2>&1; then install docker.io docker-cli; else install docker.io; fi
    fi
    [ "$(id -u)" -eq 0 ] || give_up "Docker is installed but does not run: \`sudo make engine\`."
    start
fi
echo "engine: Docker $(docker version --format '{{.Server.Version}}') answers"

# Disks of a limited size and, where no registry answers, the base image need a tool each.
if can_install; then
    command -v mkfs.ext4 >/dev/null || install e2fsprogs
    if ! docker image inspect "$BASE_IMAGE" >/dev/null 2>&1 && ! command -v debootstrap >/dev/null; then
        timeout 120 docker pull -q "$BASE_IMAGE" >/dev/null 2>&1 || install debootstrap
    fi
fi
