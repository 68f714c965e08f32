"""The one way from a conversation to its replies, which every API of chats translates to."""
