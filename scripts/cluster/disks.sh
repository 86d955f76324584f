# shellcheck shell=bash disable=SC2154 # variables of cluster.sh
# The disks of scripts/cluster.sh with SLUICE_CLUSTER_DISK: each server of the engine stores on its own file system, ext4 in a file, which can lose power.
# Linux only, and root only.

check_disks() {
  case $disk in
  *[!0-9]*) fail "SLUICE_CLUSTER_DISK is '$disk': write a number of MiB" ;;
  esac
  [ "$(id -u)" -eq 0 ] || fail "only root can mount disks: leave out SLUICE_CLUSTER_DISK"
  command -v mkfs.ext4 >/dev/null || fail "mkfs.ext4 isn't installed, which makes disks: install e2fsprogs"
}

is_mounted() { grep -qF " $folder/$1 " /proc/mounts; } # NAME

# Mounts the disk of a server, in the state in which a loss of power left it. Creates the disk if it doesn't exist.
mount_disk() { # NAME
  ! is_mounted "$1" || return 0
  mkdir -p "$folder/$1"
  if [ ! -e "$folder/$1.disk" ]; then
    truncate --size "${disk}M" "$folder/$1.disk"
    mkfs.ext4 -q "$folder/$1.disk" || fail "the disk of $1 can't be made"
  fi
  # A process that is about to end may still use the file system that lost power, in its own namespace. Until it ends, the kernel mounts that file system again.
  for _ in $(seq 50); do
    mount -o loop "$folder/$1.disk" "$folder/$1" || fail "the disk of $1 can't be mounted: has this machine loop devices?"
    if touch "$folder/$1/.mounted" 2>/dev/null; then
      rm "$folder/$1/.mounted"
      return 0
    fi
    unmount_disk "$1"
    sleep 0.2
  done
  fail "nothing can be written to the disk of $1, which was mounted anew: look at the kernel's log"
}

unmount_disk() { # NAME
  local tries
  for tries in $(seq 100); do
    is_mounted "$1" || return 0
    umount "$folder/$1" 2>/dev/null || sleep 0.1
  done
  fail "the disk of $1 is still in use after $tries tries"
}

# The file systems stop at once: data and journal entries that aren't on their disks yet are lost.
lose_power() { # NAME...
  local name paths=()
  for name in "$@"; do paths+=("$folder/$name"); done
  python3 - "${paths[@]}" <<'PROGRAM'
import fcntl, os, struct, sys
EXT4_IOC_SHUTDOWN, WITHOUT_FLUSHING_THE_LOG = 0x8004587D, 2
for path in sys.argv[1:]:
    disk = os.open(path, os.O_RDONLY)
    fcntl.ioctl(disk, EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING_THE_LOG))
    os.close(disk)
PROGRAM
}

# Makes a disk, cuts its power and removes it, or prints why that isn't possible.
try_disk() {
  check_disks
  folder=$(mktemp -d)
  trap 'umount "$folder/n1" 2>/dev/null; rm -rf "$folder"' EXIT
  mount_disk n1
  lose_power n1 || fail "this machine's ext4 can't lose power"
}
