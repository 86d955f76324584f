/// How the programs end, for scripts.
public enum ExitCode: Int32, Sendable {
  /// Done; the topic has finished.
  case success = 0
  /// Failed, as said on standard error.
  case failure = 1
  /// Wrong usage, or a configuration that can't be run.
  case usage = 2
  /// The topic ended with a failure.
  case topicFailed = 3
  /// Ended by Ctrl-C.
  case interrupted = 130
  /// Ended by SIGTERM.
  case terminated = 143
}
