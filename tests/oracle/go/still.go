package main

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// stillFactory makes informers that never run. Whoever holds it says what they know, and the
// plugins' listers and handlers hear of it at once: no goroutine, nothing to wait for.
type stillFactory struct {
	informers.SharedInformerFactory // for the groups that no plugin reads
	client                          kubernetes.Interface
	made                            map[reflect.Type]*stillInformer
}

func newStillFactory(client kubernetes.Interface) *stillFactory {
	return &stillFactory{
		SharedInformerFactory: informers.NewSharedInformerFactory(client, 0),
		client:                client,
		made:                  map[reflect.Type]*stillInformer{},
	}
}

func (f *stillFactory) InformerFor(
	kind runtime.Object, newInformer internalinterfaces.NewInformerFunc,
) cache.SharedIndexInformer {
	key := reflect.TypeOf(kind)
	if _, found := f.made[key]; !found {
		f.made[key] = &stillInformer{SharedIndexInformer: newInformer(f.client, 0)}
	}
	return f.made[key]
}

func (f *stillFactory) Apps() apps.Interface { return apps.New(f, metav1.NamespaceAll, nil) }
func (f *stillFactory) Core() core.Interface { return core.New(f, metav1.NamespaceAll, nil) }
func (f *stillFactory) Resource() resource.Interface {
	return resource.New(f, metav1.NamespaceAll, nil)
}
func (f *stillFactory) Scheduling() scheduling.Interface {
	return scheduling.New(f, metav1.NamespaceAll, nil)
}
func (f *stillFactory) Storage() storage.Interface {
	return storage.New(f, metav1.NamespaceAll, nil)
}

// stillInformer stands as its own registration: it is as synced as it will ever be.
type stillInformer struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

func (i *stillInformer) AddEventHandler(
	handler cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return i, nil
}

func (i *stillInformer) HasSynced() bool { return true }

// tell makes the objects all that there are of a kind. A kind that no plugin reads is nothing.
func tell[T runtime.Object](f *stillFactory, objects []T) error {
	var kind T
	informer, found := f.made[reflect.TypeOf(kind)]
	if !found {
		return nil
	}
	indexer := informer.GetIndexer()
	for _, old := range indexer.List() {
		if err := indexer.Delete(old); err != nil {
			return err
		}
		for _, handler := range informer.handlers {
			handler.OnDelete(old)
		}
	}
	for _, object := range objects {
		if err := indexer.Add(object); err != nil {
			return err
		}
		for _, handler := range informer.handlers {
			handler.OnAdd(object, false)
		}
	}
	return nil
}
