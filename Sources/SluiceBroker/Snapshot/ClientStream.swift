/// A stream of a connection that a topic lists.
protocol ClientStream: AnyObject {
  var streams: StreamMultiplexer { get }
}

extension ClientStream {
  /// What its client comes by.
  var door: DoorName { DoorName(streams.client.peer) }
}

extension SubscriptionStream: ClientStream {}
extension GroupStream: ClientStream {}
extension PublicationStream: ClientStream {}
