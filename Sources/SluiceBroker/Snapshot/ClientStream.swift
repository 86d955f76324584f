/// A stream of a connection that a topic lists.
protocol ClientStream: AnyObject {
  var streams: StreamMultiplexer { get }
}

extension ClientStream {
  /// The protocol of its client.
  var door: DoorName { DoorName(streams.client.peer) }
}

extension SubscriptionStream: ClientStream {}
extension GroupStream: ClientStream {}
extension PublicationStream: ClientStream {}
