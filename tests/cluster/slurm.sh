#!/usr/bin/env bash
# A Slurm of one node, without services of the system: slurm.sh start|stop FOLDER
#
# Packages: apt-get install slurm-wlm (Debian and Ubuntu). Nothing outside FOLDER is changed. Then, in a shell:
#   export SLURM_CONF=FOLDER/slurm.conf
# Messages are not authenticated (auth/none): for tests, on a machine of one's own.
set -euo pipefail
[ $# -eq 2 ] || { sed -n 's/^# \?//; 2,7p' "$0"; exit 2; }
mkdir -p "$2"
folder=$(realpath "$2")
export SLURM_CONF=$folder/slurm.conf PATH=$PATH:/usr/sbin

stop() {
    for name in slurmd slurmctld; do
        [ -s "$folder/$name.pid" ] && kill "$(cat "$folder/$name.pid")" 2> /dev/null || true
    done
}

start() {
    for program in slurmctld slurmd srun; do
        command -v "$program" > /dev/null || { echo "$program is missing: apt-get install slurm-wlm" >&2; exit 1; }
    done
    host=$(hostname -s) user=$(id -un) first=$((20000 + RANDOM % 10000))
    mkdir -p "$folder/state" "$folder/spool"
    # Twice as many processors as there are, so that two jobs of two tasks can run; memory is not shared out.
    cat > "$SLURM_CONF" << END
ClusterName=tests
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$first
SlurmdPort=$((first + 1))
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
CryptoType=crypto/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait=30
InactiveLimit=0
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1,requeue_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=gpu Nodes=$host Default=YES MaxTime=60 PriorityTier=1 GraceTime=10 State=UP
PartitionName=urgent Nodes=$host MaxTime=60 PriorityTier=2 State=UP
END
    slurmctld
    slurmd -N "$host"
    for _ in $(seq 60); do
        [ "$(sinfo --noheader --format %t --partition gpu 2> /dev/null)" = idle ] && exit 0
        sleep 0.5
    done
    echo "Slurm did not start; the ends of its logs:" >&2
    tail -n 5 "$folder"/*.log >&2
    exit 1
}

case $1 in
    start) start ;;
    stop) stop ;;
    *) echo "$1 is neither start nor stop" >&2; exit 2 ;;
esac
