import Glibc

/// Standard input, output and error as they were given to the process.
public enum StandardStreams {
  /// Fills places that were left empty, as by `>&-`, so that no socket or file gets the number 0, 1 or 2 and with it what is meant for them.
  /// Reading and writing there still fails. First thing in `main`.
  public static func reserve() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is taken, which is this one. For the wrong direction each, so that using it is an error.
      _ = unsafe open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
