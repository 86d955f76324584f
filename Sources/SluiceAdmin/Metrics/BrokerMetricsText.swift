import SluiceBroker

/// Writes the broker's own counters and gauges as metrics with the same names.
enum BrokerMetricsText {
  static func write(_ values: [(metric: BrokerMetric, value: Int)], to text: inout MetricsText) {
    for (metric, value) in values {
      let kind: MetricsText.Kind = metric.kind == .counter ? .counter : .gauge
      let name = "sluice_broker_\(metric.name)"
      switch metric {
      case .memoryUsed, .memoryCeiling:
        text.family("\(name)_bytes", kind, unit: "bytes", help(metric))
      case .bufferedBytes, .keptBytes: text.family(name, kind, unit: "bytes", help(metric))
      default: text.family(name, kind, help(metric))
      }
      text.sample(Double(value))
    }
  }

  private static func help(_ metric: BrokerMetric) -> String {
    switch metric {
    case .connections: "Connections at present."
    case .connectionsAccepted: "Connections that were ever accepted."
    case .refusedConnections: "Connections that were refused because there were too many."
    case .refusedConnectionsPerAddress:
      "Connections that were refused because there were too many from their address."
    case .refusedConnectionsPerIdentity:
      "Connections that were refused because there were too many of their identity."
    case .refusedDescriptors: "Connections that were reset because too many others were about to close."
    case .handshakeTimeouts: "Connections that didn't introduce themselves in time."
    case .keepaliveTimeouts: "Connections that were silent for too long."
    case .idleTimeouts: "Connections that had nothing open for too long."
    case .writeTimeouts: "Connections that didn't read what was sent to them."
    case .failedAuthentications: "Credentials that proved nothing."
    case .refusedAuthentications: "Credentials that weren't looked at because too many waited."
    case .slowedAuthentications: "Credentials that had to wait since others from their address were wrong."
    case .expiredCredentials: "Connections whose credentials have expired."
    case .revokedConnections: "Connections whose identity may not connect any more."
    case .deniedPermissions: "Streams that were refused or ended because their client may not have them."
    case .unnamedMessages:
      "Messages of MQTT that weren't published because the broker can't name their topics."
    case .subscriptions: "Subscriptions of all connections."
    case .publications: "Publications of all connections."
    case .refusedTopics: "Topics that weren't made because there were too many."
    case .refusedTopicsPerConnection: "Topics that weren't made because their connection had made too many."
    case .refusedSubscriptions: "Subscriptions that were refused because there were too many."
    case .refusedSubscriptionsPerConnection:
      "Subscriptions that were refused because their connection had too many."
    case .refusedPublications: "Publications that were refused because there were too many."
    case .refusedPublicationsPerConnection:
      "Publications that were refused because their connection had too many."
    case .refusedPatterns: "Subscriptions to patterns that were refused because there were too many."
    case .refusedMatches: "Subscriptions to patterns that were refused because they matched too many topics."
    case .settingChanges: "How often clients have changed settings of topics."
    case .trims: "How often clients have trimmed topics."
    case .recordsTrimmed: "Records that late subscribers don't get any more because a topic was trimmed."
    case .closedByOperators: "Connections that operators have closed."
    case .bufferedBytes: "Bytes that wait in connections, in either direction."
    case .closedForBuffering: "Connections that were closed because all together buffered too much."
    case .refusedOversizes: "Streams that were refused because too much came for them."
    case .memoryUsed: "Bytes of records, of what waits in connections, and of what else is kept for clients."
    case .keptBytes:
      "Bytes of topics, groups, cursors, producers, subscriptions and publications, besides records."
    case .refusedKept:
      "Requests that were refused because the memory for what is kept besides records, or the client's share of it, was used up."
    case .memoryCeiling: "Bytes at which producers wait; 0 for no ceiling."
    case .memoryCeilingReached: "How often the ceiling of memory was reached."
    case .memoryHolds: "Publications that were refused more because of the ceiling of memory."
    case .memoryPauses: "How often a connection wasn't read from because memory went beyond the ceiling."
    case .publishRateHolds: "How often a publication waited for its identity's rate."
    case .recordsReceived: "Records that were published."
    case .recordsSent: "Records that were sent to subscribers."
    case .bytesReceived: "Bytes of frames that were read."
    case .bytesSent: "Bytes of frames that were written."
    case .topics: "Topics at present."
    case .commits: "How often durable topics were brought to disk."
    case .failedCommits: "How often that failed."
    case .rejectedChanges: "Changes of durable topics that the store refused for what was in them."
    case .bytesStored: "Bytes of records that were brought to disk."
    case .storageBacklog: "Bytes of records that wait to be brought to disk."
    case .deliveryRateHolds: "How often a connection's subscriptions waited for their identity's rate."
    }
  }
}
