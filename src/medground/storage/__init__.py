"""Where a run lies: in a folder or behind an address of an object store, put and read by key."""

from medground.storage.base import Storage, Stored
from medground.storage.folder import FolderStorage
from medground.storage.opening import is_address, open_storage

__all__ = ["FolderStorage", "Storage", "Stored", "is_address", "open_storage"]
