import SluiceWire

extension Problem {
  /// Advice to an operator, in sentences; nil if ``sentence`` says so already.
  ///
  /// Has no name that a client has chosen: commands in it can be copied to a shell.
  public var remedy: String? {
    switch kind {
    case .storageFull:
      "Delete or trim durable topics, free space on the disk, or raise --storage-limit. Publishing continues by itself."
    case .storageFailing:
      "Read the broker's log and check the disk. The broker retries, and publishing continues with the first successful write."
    case .storageNearlyFull:
      "Delete or trim durable topics, shorten their retention, or raise --storage-limit."
    case .memoryFull, .memoryNearlyFull:
      "Lower replay-bytes of topics in memory (sluice topic set), or raise --memory."
    case .keptMemoryFull, .keptMemoryShareNearlyFull: nil
    case .heldUp:
      place.connection == nil
        ? "Look at what they wait for: sluice why TOPIC."
        : "Make the subscriber request more, close its connection, or set the topic's flow to free. Details: sluice why TOPIC."
    case .consumerLag:
      "Start its subscriber, or add members to the group. Delete it if it isn't needed (sluice cursor delete TOPIC NAME)."
    case .subscriberLag:
      "Check the subscriber's program and its network, or share the records among members of a group."
    case .missedRecords:
      "Raise the topic's retention (sluice topic set TOPIC --replay-age TIME), or make its flow lossless."
    case .lostHistory:
      "Check whether a backup or an older copy of the data directory was restored. Subscribers continue at the offset above."
    case .deadLetters:
      "Find out from the dead-letter topic, if the group has one, or from the members' logs why records are rejected."
    case .timesAhead:
      "Check the clock and its synchronization. Limits by age apply again when the clock has caught up."
    case .rejectedLogins:
      "Find the addresses and names in the broker's log, and correct the credentials of those clients."
    case .refusedConnections:
      "Close connections that aren't needed, or raise --max-connections, --max-connections-per-address or --max-connections-per-identity, whichever the log names."
    case .slowLoops: "Check the machine's load, and raise --loops if it has idle processors."
    case .engineUnreachable:
      "Check that the engine's servers run, and that this node reaches the addresses in --cluster."
    case .engineDegraded: "Check the engine's servers and their logs."
    case .nodeNotReady: "The node retries by itself. If this stays, read its log."
    case .nodeUnreachable:
      "Check that the node runs, and that this one reaches the address that it advertises (--advertise)."
    case .shardsWithoutOwner:
      "Wait until a live node takes them over. If this stays, check the logs of the nodes."
    case .engineUnsafe:
      "Set sync_interval: always at each server of the engine, then start the nodes without --engine-unsafe."
    }
  }
}
